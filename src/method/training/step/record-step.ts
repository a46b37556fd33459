import { TrainingError } from '@drmas/engine/errors';
import type { EpisodeFailed, Spike, Step, Warning } from '@drmas/engine/events';
import type { Turn } from '@drmas/engine/nouns';
import { costOfCalls } from '../../../teams/rollout.js';
import { remedyBesideDemonstrations } from '../play/demonstration-remedy.js';
import { failuresAfter, failureWarnings, fatalFailure } from '../play/failures.js';
import type { Played } from '../play/played.js';
import { keepStep } from '../record/kept-episodes.js';
import { failureEvents, stepEvent } from '../record/step-event.js';
import type { RunLog, TrainingRun } from '../run/run-state.js';
import {
  awaitWarnings,
  baselineWarnings,
  estimatorHints,
  failureRewards,
  gapWarnings,
  memoryWarnings,
  missingOutcomes,
  negativeRewards,
  numberedTools,
  opposedRewards,
  partWarnings,
  scaledParts,
  uncountedTokens,
  unheardTeam,
} from '../stability/step-warnings.js';
import { demonstrationWarnings } from '../stability/taught-answers.js';
import type { Progress } from '../state/progress.js';
import type { Learnt } from '../update/update-policies.js';
import type { StepPosition } from './play-step.js';

/**
 * If all episodes of a step failed, and further steps would too, records the step and ends the run.
 * @throws TrainingError then
 */
export async function refuseCommonFailure(
  { training, ...shown }: Pick<TrainingRun, 'training' | 'demonstrations' | 'warmStartShare'>,
  { failing }: Pick<Progress, 'failing'>,
  log: RunLog,
  played: Played,
): Promise<void> {
  const fatal = fatalFailure(failing, played, remedyBesideDemonstrations(shown));
  if (fatal === undefined) return;
  for (const event of failureEvents(played.all, played.step, training.failedEpisodes)) log.emit(event);
  await keepStep(training, log, played);
  throw new TrainingError(fatal);
}

export function advance(progress: Progress, { step, predictions }: StepPosition, learnt: Learnt): void {
  progress.step = step;
  progress.estimator = learnt.advantages.state;
  progress.predictions = predictions;
}

/**
 * Writes the events and the episodes of a step, and the warnings about it.
 * @throws TrainingError if the run must end: its gradients are not numbers, or the recipe stops at a spike
 */
export async function recordStep(
  run: Pick<
    TrainingRun,
    'agents' | 'training' | 'estimator' | 'learners' | 'prices' | 'demonstrations' | 'warmStartShare'
  >,
  progress: Progress,
  log: RunLog,
  played: Played,
  learnt: Learnt,
): Promise<void> {
  const recorded = stepEvents(run, played, learnt);
  const { events, fatal } = judgeStep(run, progress, recorded.at(-1) as Step, played, learnt);
  const taught = demonstrationWarnings(run, played);
  const stop = fatal === undefined ? progress.stops.afterStep(recorded.at(-1) as Step, turnsOf(played)) : undefined;
  const failing = failureWarnings(progress.failing, played, remedyBesideDemonstrations(run));
  for (const event of [...recorded, ...taught, ...events, ...failing]) log.emit(event);
  progress.failing = failuresAfter(progress.failing, played);
  await keepStep(run.training, log, played, learnt);
  if (fatal !== undefined) throw new TrainingError(fatal);
  if (stop !== undefined) log.emit(stop);
}

const turnsOf = ({ all, extra }: Pick<Played, 'all' | 'extra'>): Turn[] =>
  [...all.flatMap(({ episodes }) => episodes), ...extra.episodes].flatMap(({ turns }) => turns);

interface StepJudgement {
  readonly events: readonly (Spike | Warning)[];
  readonly fatal: string | undefined;
}

/** Checks a recorded step for spikes, for agents that learn nothing, and for unsuitable settings. */
function judgeStep(
  run: Pick<TrainingRun, 'agents' | 'training' | 'estimator' | 'prices'>,
  { watch }: Pick<Progress, 'watch'>,
  recorded: Step,
  played: Played,
  { advantages, updates }: Learnt,
): StepJudgement {
  const { training, estimator } = run;
  const episodes = played.scored.flatMap((group) => group.episodes);
  const { events, fatal } = watch.judge(recorded, advantages, updates, episodes);
  const silence = watch.silence.judge(recorded, updates);
  const hints = [
    ...awaitWarnings(played),
    ...memoryWarnings(played),
    ...numberedTools(played),
    ...failureRewards(played, costOfCalls(run.agents, training.partWeights)),
    ...opposedRewards(played),
    ...baselineWarnings(played),
    ...partWarnings({ training, estimator }, played),
    ...scaledParts(run, played, advantages),
    ...unheardTeam(run, played, advantages),
    ...negativeRewards(run, played, advantages),
    ...uncountedTokens(run, played),
    ...gapWarnings(played, updates, training.logprobGap),
    ...estimatorHints(run, played.step, advantages),
  ];
  // A missing outcome explains why nothing is learnt.
  return { events: [...events, ...missingOutcomes(played), ...silence, ...hints], fatal };
}

/** The events that record a step: one for each episode that failed, then the step itself. */
export function stepEvents(
  run: Pick<TrainingRun, 'agents' | 'training' | 'learners' | 'prices'>,
  played: Played,
  learnt: Learnt,
): readonly [...failures: EpisodeFailed[], step: Step] {
  const failures = failureEvents(played.all, played.step, run.training.failedEpisodes);
  return [...failures, stepEvent(run, played, learnt)];
}
