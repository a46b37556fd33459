/** The rollout of a step: it plays the episodes, and selects the episodes that policies learn from. */
import { type EpisodeGroup, type Task, withoutUnscored } from '@drmas/engine/nouns';
import { applyFailureRule, type Versions } from '../../../teams/rollout.js';
import { levelsOf, predictionsAfter, tasksByPrediction } from '../play/curriculum.js';
import { groupSizesOf, passFilter } from '../play/group-sizes.js';
import type { Played } from '../play/played.js';
import { furtherTasks } from '../play/step-tasks.js';
import type { Playing, TrainingRun } from '../run/run-state.js';
import { playSignals } from '../signals/index.js';
import type { Progress } from '../state/progress.js';

export type StepPlayer = Playing & Pick<TrainingRun, 'estimator' | 'signals'>;

export type StepPosition = Readonly<Pick<Progress, 'step' | 'predictions'>>;

export const positionAfter = (
  run: Pick<TrainingRun, 'training'>,
  { predictions }: StepPosition,
  { step, levels }: Played,
): StepPosition => ({ step, predictions: predictionsAfter(predictions, levels, run) });

export interface PlayOptions {
  /** The number of tasks; `training.tasksPerStep` by default. */
  readonly tasks?: number;
  /** The published versions of the policies that play. Default: the latest versions. */
  readonly versions?: Versions | undefined;
  /** Settles when agents may answer. The first episodes begin before. */
  readonly ready?: Promise<unknown> | undefined;
}

/**
 * Plays the step after the last complete step: G episodes of each of its tasks, and the rollouts of the run's signals.
 * If a filter refills, it plays further tasks until enough groups are kept or the rounds are over.
 * @throws the reason of the host's signal if interrupted
 */
export async function playStep(run: StepPlayer, progress: StepPosition, options: PlayOptions = {}): Promise<Played> {
  const { training, tasks, host } = run;
  const step = progress.step + 1;
  const { failedEpisodes, filter } = training;
  const { tasks: count = training.tasksPerStep, versions, ready } = options;
  const started = host.clock.seconds();
  const maxRounds = filter?.type === 'equal-outcomes' ? (filter.refill?.maxRounds ?? 1) : 1;
  const all: EpisodeGroup[] = [];
  const scored: EpisodeGroup[] = [];
  const kept: EpisodeGroup[] = [];
  let next = tasksByPrediction(tasks.train, run, step, progress.predictions).slice(0, count);
  const further = furtherTasks(tasks.train, run.seed, step, next);
  let rounds = 0;
  while (next.length > 0) {
    const round = await playTasks(run, progress, next, { versions, ready });
    const fair = applyFailureRule(round, failedEpisodes);
    all.push(...round);
    scored.push(...fair);
    kept.push(...passFilter(fair, filter));
    rounds++;
    const missing = count - kept.length;
    if (rounds >= maxRounds || missing <= 0) break;
    // The number that is probably needed, by the share of groups that was kept so far.
    const share = kept.length / all.length;
    next = [...take(further, share > 0 ? Math.min(count, Math.ceil(missing / share)) : count)];
  }
  const learnt = kept.slice(0, count);
  const counts = {
    rounds,
    played: all.length,
    refilled: Math.max(0, all.length - count),
    dropped: all.length - kept.length,
    surplus: kept.length - learnt.length,
    kept: learnt.length,
  };
  const extra = await playSignals(run, { step, groups: learnt, versions });
  const levels = levelsOf(withoutUnscored(all), run, tasks, progress.predictions);
  return {
    step,
    all,
    scored,
    kept: learnt,
    extra,
    ...(levels && { levels }),
    ...(filter === undefined ? {} : { filter: counts }),
    seconds: host.clock.seconds() - started,
  };
}

/** Plays a group of episodes of each of the tasks. The groups are equal unless the curriculum sets their sizes. */
function playTasks(
  { team, training, executor, host }: Playing,
  { step, predictions }: StepPosition,
  tasks: readonly Task[],
  options: Pick<PlayOptions, 'versions' | 'ready'>,
): Promise<EpisodeGroup[]> {
  return executor.playGroups({
    team,
    tasks,
    groupSize: groupSizesOf(tasks, { training }, predictions),
    phase: 'training',
    step: step + 1,
    ...options,
    signal: host.signal,
  });
}

function* take<T>(items: Iterator<T>, count: number): Generator<T> {
  for (let i = 0; i < count; i++) {
    const { value, done } = items.next();
    if (done === true) return;
    yield value;
  }
}
