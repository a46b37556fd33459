/** The rollout of a step: its episodes, and those among them that policies learn from. */
import { needOf } from '../../advantage/estimators/index.js';
import { keptGroups } from '../../advantage/filter.js';
import { type Episode, type EpisodeGroup, trainedTurns, turnReward } from '../../core/episode.js';
import type { Step } from '../../core/events.js';
import { mean } from '../../core/statistics.js';
import type { Task } from '../../core/task.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { Versions } from '../../rollout/rollout-context.js';
import { applyFailureRule } from '../../rollout/score.js';
import type { OpenRun } from '../run-state.js';
import { type Branched, playBranches } from './branches.js';
import { type Levels, levelsOf, type Predictions, tasksByPrediction } from './curriculum.js';
import { groupSizesOf } from './group-sizes.js';
import { furtherTasks } from './step-tasks.js';

/** The episodes of a step. */
export interface StepRollout {
  /** Every group, failed episodes among them. */
  readonly all: readonly EpisodeGroup[];
  /** Every group as the rule about failed episodes leaves it. */
  readonly scored: readonly EpisodeGroup[];
  /** The groups that policies learn from: `scored` without those that the filter dropped. */
  readonly kept: readonly EpisodeGroup[];
  /** A greedy episode of each task in `kept`, where the estimator wants one. Nothing is learnt from them. */
  readonly greedy: readonly Episode[];
  /** Other ends of the episodes in `kept`, where the estimator wants alternatives. Nothing is learnt from them. */
  readonly branches: readonly Branched[];
  /** The filter's counts, where there is one. */
  readonly filter?: Step['filter'];
  /** How each level of the tasks went, where they have levels. */
  readonly levels?: Levels;
  /** The updates that were made since by the policies that played; absent where no rollout begins ahead. */
  readonly staleness?: number;
}

/** What a rollout takes of a run. */
type Playing = Pick<OpenRun, 'recipe' | 'tasks' | 'executor' | 'host'>;

/**
 * Plays the tasks of a step, by these published versions or the last ones; with a filter that refills, further tasks
 * until enough groups are kept or the rounds are over.
 */
export async function rolloutStep(
  run: Playing,
  step: number,
  versions?: Versions,
  predictions: Predictions = {},
): Promise<StepRollout> {
  const { recipe, tasks } = run;
  const { tasksPerStep, failedEpisodes, filter } = recipe.training;
  const maxRounds = filter?.type === 'equal-outcomes' ? (filter.refill?.maxRounds ?? 1) : 1;
  const all: EpisodeGroup[] = [];
  const scored: EpisodeGroup[] = [];
  const kept: EpisodeGroup[] = [];
  let next = tasksByPrediction(tasks.train, recipe, step, predictions);
  const further = furtherTasks(tasks.train, recipe.seed, step, next);
  let rounds = 0;
  while (next.length > 0) {
    const round = await playTasks(run, step, next, versions, predictions);
    const fair = applyFailureRule(round, failedEpisodes);
    all.push(...round);
    scored.push(...fair);
    kept.push(...withSignal(fair, filter));
    rounds++;
    const missing = tasksPerStep - kept.length;
    if (rounds >= maxRounds || missing <= 0) break;
    // The number that is probably needed, judged by the share that was kept so far.
    const share = kept.length / all.length;
    next = [...take(further, share > 0 ? Math.min(tasksPerStep, Math.ceil(missing / share)) : tasksPerStep)];
  }
  const learnt = kept.slice(0, tasksPerStep);
  const counts = {
    rounds,
    played: all.length,
    refilled: Math.max(0, all.length - tasksPerStep),
    dropped: all.length - kept.length,
    surplus: kept.length - learnt.length,
    kept: learnt.length,
  };
  const greedy = await playGreedy(run, step, learnt, versions);
  const branches = await playBranches(run, step, learnt, versions);
  const levels = levelsOf(scored, recipe, tasks, predictions);
  return {
    all,
    scored,
    kept: learnt,
    greedy,
    branches,
    ...(levels && { levels }),
    ...(filter === undefined ? {} : { filter: counts }),
  };
}

/** Plays a group of episodes of each of the tasks; equal groups where nothing is predicted. */
export function playTasks(
  run: Playing,
  step: number,
  tasks: readonly Task[],
  versions?: Versions,
  predictions: Predictions = {},
): Promise<EpisodeGroup[]> {
  const { recipe, executor } = run;
  return executor.playGroups({
    team: recipe.team,
    tasks,
    groupSize: groupSizesOf(tasks, recipe, predictions),
    phase: 'training',
    step,
    versions,
    signal: run.host.signal,
  });
}

/** Plays one greedy episode of each group's task, where the recipe's estimator measures against one. */
export async function playGreedy(
  run: Playing,
  step: number,
  groups: readonly EpisodeGroup[],
  versions?: Versions,
): Promise<Episode[]> {
  const { recipe, executor } = run;
  if (needOf(recipe.advantage) !== 'baseline') return [];
  const played = await executor.playGroups({
    team: recipe.team,
    tasks: groups.map(({ task }) => task),
    groupSize: 1,
    phase: 'baseline',
    step,
    sampling: { temperature: 0 },
    versions,
    signal: run.host.signal,
  });
  return played.flatMap(({ episodes }) => episodes);
}

type Filter = NonNullable<Recipe['training']['filter']>;

/** The groups that the filter keeps; all of them where there is none. */
function withSignal(groups: readonly EpisodeGroup[], filter: Filter | undefined): EpisodeGroup[] {
  if (filter === undefined) return [...groups];
  const scores = groups.map(({ episodes }) => episodes.map((episode) => filterScore(episode, filter.score)));
  return keptGroups(scores, filter).map((position) => groups[position] as EpisodeGroup);
}

/** The score of an episode, by the names of the estimators' `episodeScore`. */
function filterScore(episode: Episode, score: Filter['score']): number {
  const { team } = episode.score;
  const turns = trainedTurns(episode);
  if (score === 'outcome' || turns.length === 0) return team;
  const rewards = turns.map((turn) => turnReward(episode, turn));
  return score === 'mean' ? mean(rewards) : rewards.reduce((sum, reward) => sum + (reward - team), team);
}

function* take<T>(items: Iterator<T>, count: number): Generator<T> {
  for (let i = 0; i < count; i++) {
    const { value, done } = items.next();
    if (done === true) return;
    yield value;
  }
}
