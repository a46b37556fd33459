import type { EpisodeFailed, Step } from '../../../base/events.js';
import type { Played } from '../play/played.js';
import { failureEvents, stepEvent } from '../record/step-event.js';
import type { TrainingRun } from '../run/run-state.js';
import type { Learnt } from '../update/learnt.js';

/** The events that record a step: one for each episode that failed, then the step itself. */
export function stepEvents(
  { training, learners }: Pick<TrainingRun, 'training' | 'learners'>,
  played: Played,
  learnt: Learnt,
): readonly [...failures: EpisodeFailed[], step: Step] {
  const failures = failureEvents(played.all, played.step, training.failedEpisodes);
  return [...failures, stepEvent(learners, played, learnt)];
}
