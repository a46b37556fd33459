/** Episodes with two sets of system prompts on the same tasks, and the difference in success. */
import { join } from 'node:path';
import { TrainingError } from '../../../base/errors.js';
import type { EvaluationEvent } from '../../../base/events.js';
import { mean } from '../../../base/math.js';
import type { Task } from '../../../base/nouns.js';
import { type EpisodeGroup, successOf } from '../../../base/nouns.js';
import type { OpenRun } from '../../../method/index.js';
import { commonFailure, evaluationEvent, evaluationTasks, failureText, tasksOfStep } from '../../../method/index.js';
import { storedEpisode, writeEpisodes } from '../../../method/store.js';
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
  /** The mean success of each task. */
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/** The tasks of a round: the tasks of a run's step with this number. No other round has them. */
export const tasksOfRound = ({ seed, tasks }: Pick<OpenRun, 'seed' | 'tasks'>, round: number, count: number) =>
  tasksOfStep(tasks.train, seed, round + 1, count);

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
  if (common !== undefined) throw new TrainingError(`all episodes failed for the same reason: ${failureText(common)}`);
  return groups;
}

/** The mean success of each task. */
const successes = (groups: readonly EpisodeGroup[]): number[] =>
  groups.map(({ episodes }) => mean(episodes.map(successOf)));

/** The paired difference over tasks, with Student's interval. */
export function comparedPrompts(
  before: readonly EpisodeGroup[],
  after: readonly EpisodeGroup[],
  level: number,
): ComparedPrompts {
  const [old, proposed] = [successes(before), successes(after)];
  const differences = proposed.map((score, i) => score - (old[i] as number));
  return { before: old, after: proposed, ...pairedInterval(differences, level) };
}

/** The first and the last prompts on held-out tasks. */
export interface HeldOutComparison extends PairedInterval {
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
  const { mean, interval } = comparedPrompts(first.groups, last.groups, level);
  return { first: first.event, last: last.event, mean, ...(interval === undefined ? {} : { interval }) };
}
