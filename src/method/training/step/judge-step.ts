import type { Spike, Step, Warning } from '../../../base/events.js';
import type { Played } from '../play/played.js';
import type { TrainingRun } from '../run/run-state.js';
import { estimatorHints } from '../stability/estimator-hints.js';
import { awaitWarnings, gapWarnings, partWarnings } from '../stability/step-warnings.js';
import type { Progress } from '../state/progress.js';
import type { Learnt } from '../update/learnt.js';

export interface StepJudgement {
  readonly events: readonly (Spike | Warning)[];
  /** The reason why the run must end, if it must. */
  readonly fatal: string | undefined;
}

/** Checks a recorded step for spikes, for agents that learn nothing, and for unsuitable settings. */
export function judgeStep(
  { training, estimator }: Pick<TrainingRun, 'training' | 'estimator'>,
  { watch }: Pick<Progress, 'watch'>,
  recorded: Step,
  played: Played,
  { advantages, updates }: Learnt,
): StepJudgement {
  const { events, fatal } = watch.judge(recorded, advantages, updates);
  const silence = watch.silence.judge(recorded, updates);
  const hints = [
    ...awaitWarnings(played),
    ...partWarnings(training, played),
    ...gapWarnings(played, updates, training.logprobGap),
    ...estimatorHints({ estimator, groupSize: training.groupSize }, played.step, advantages),
  ];
  return { events: [...events, ...silence, ...hints], fatal };
}
