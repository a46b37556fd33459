/** Episodes with two sets of system prompts on the same tasks, and the difference in success. */
import { join } from 'node:path';
import { TrainingError } from '@drmas/engine/errors';
import type { EvaluationEvent } from '@drmas/engine/events';
import { mean } from '@drmas/engine/math';
import { type EpisodeGroup, successOf, type Task, withoutUnscored } from '@drmas/engine/nouns';
import type { OpenRun } from '../../../method/index.js';
import { allFailedText, commonFailure, evaluationEvent, evaluationTasks, tasksOfStep } from '../../../method/index.js';
import { type ImprovementRecord, storedEpisode, writeEpisodes } from '../../../method/store.js';
import type { SystemPrompts } from '../../../teams/rollout.js';
import { type PairedInterval, pairedInterval } from '../../analysis/paired-interval.js';

/** The tasks of a round, and the directory of its episodes. */
export interface PlayedRound {
  readonly run: OpenRun;
  /** The improvement's directory. */
  readonly directory: string;
  readonly tasks: readonly Task[];
  /** Episodes of each task. */
  readonly samples: number;
  /** Selects the round's random numbers, which both sets of prompts share. */
  readonly step: number;
}

/** Two sets of prompts on the same tasks. */
export interface ComparedPrompts extends PairedInterval {
  /** The mean success of each task that has a score with both sets. */
  readonly before: readonly number[];
  readonly after: readonly number[];
  /** Present if the reward of some episodes failed: their number, and the number of all episodes of both sets. */
  readonly unscored?: number;
  readonly episodes?: number;
}

type TasksOf = Pick<OpenRun, 'seed' | 'tasks'>;
type Counts = Pick<ImprovementRecord, 'tasks' | 'pool'>;

/** The tasks of a round, which no other round has: the tasks of a step of a run. The pool has the steps before. */
export function tasksOfRound({ seed, tasks }: TasksOf, round: number, { tasks: count, pool = count }: Counts): Task[] {
  return tasksOfStep(tasks.train, seed, Math.ceil(pool / count) + round, count);
}

/** The tasks on which all candidates of a pool play. No round has them. */
export const tasksOfPool = ({ seed, tasks }: TasksOf, { pool = 0 }: Counts): Task[] =>
  tasksOfStep(tasks.train, seed, 1, pool);

/** Plays all tasks with the prompts and stores the episodes as `episodes/<name>.jsonl`. */
export async function playedWith(
  { run, directory, tasks, samples, step }: PlayedRound,
  prompts: SystemPrompts,
  name: string,
): Promise<EpisodeGroup[]> {
  const { team, executor, host } = run;
  const groups = await executor.playGroups({
    team,
    tasks,
    groupSize: samples,
    phase: 'evaluation',
    step,
    prompts,
    signal: host.signal,
  });
  const episodes = groups.flatMap((group) => group.episodes.map((episode) => storedEpisode(episode)));
  await host.files.makeDirectory(join(directory, 'episodes'));
  await writeEpisodes(host.files, join(directory, 'episodes', `${name}.jsonl`), episodes);
  return groups;
}

/**
 * Requires that at least one episode of the current prompts did not fail. Episodes of proposed prompts may all fail.
 * @throws TrainingError if all episodes failed for one reason
 */
export function requireWorking(groups: readonly EpisodeGroup[]): readonly EpisodeGroup[] {
  const common = commonFailure(groups);
  if (common !== undefined) throw new TrainingError(allFailedText(common));
  return groups;
}

/** The mean success of each task, in [0, 1]. Null for a task whose rewards all failed. */
export const scoresOfTasks = (groups: readonly EpisodeGroup[]): (number | null)[] =>
  withoutUnscored(groups).map(({ episodes }) => (episodes.length === 0 ? null : mean(episodes.map(successOf))));

const countOf = (groups: readonly EpisodeGroup[]) => groups.reduce((sum, { episodes }) => sum + episodes.length, 0);

/**
 * The paired difference over tasks, with Student's interval. An episode whose reward failed has no score and is left
 * out, and so is a task that has no score with one of the sets.
 */
export function comparedPrompts(
  before: readonly EpisodeGroup[],
  after: readonly EpisodeGroup[],
  level: number,
): ComparedPrompts {
  const played = [before, after].map(withoutUnscored);
  const [old = [], proposed = []] = played.map((groups) => groups.map(({ episodes }) => episodes.map(successOf)));
  const pairs = old.flatMap((successes, i) => {
    const others = proposed[i] ?? [];
    return successes.length === 0 || others.length === 0 ? [] : [[mean(successes), mean(others)] as const];
  });
  const episodes = countOf(before) + countOf(after);
  const unscored = episodes - countOf(played.flat());
  return {
    before: pairs.map(([score]) => score),
    after: pairs.map(([, score]) => score),
    ...(unscored === 0 ? {} : { unscored, episodes }),
    ...pairedInterval(
      pairs.map(([score, other]) => other - score),
      level,
    ),
  };
}

/** The first and the last prompts on held-out tasks. */
export interface HeldOutComparison extends Omit<ComparedPrompts, 'before' | 'after'> {
  readonly first: EvaluationEvent;
  readonly last: EvaluationEvent;
}

/** Plays the recipe's evaluation with no changed prompts and with these. */
export async function heldOutComparison(
  run: OpenRun,
  directory: string,
  prompts: SystemPrompts,
): Promise<HeldOutComparison> {
  const { evaluation, prices, tasks, host } = run;
  const { samples, level, tasks: count } = evaluation;
  const round = { run, directory, tasks: evaluationTasks(tasks.test, count), samples, step: 0 };
  const played = async (prompts: SystemPrompts, name: string) => {
    const started = host.clock.seconds();
    const groups = await playedWith(round, prompts, name);
    const request = { step: 0, tasks: count, samples, level, prices };
    return { groups, event: evaluationEvent(groups, request, host.clock.seconds() - started) };
  };
  const first = await played({}, 'held-out-first');
  const last = await played(prompts, 'held-out-last');
  const { before: _, after: __, ...difference } = comparedPrompts(first.groups, last.groups, level);
  return { first: first.event, last: last.event, ...difference };
}
