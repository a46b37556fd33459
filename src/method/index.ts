/** Door of `method`: the training loop and its parts. */
export { rewardRecord, type StepAdvantages, stepAdvantages } from './training/advantages/advantages.js';
export { playEvaluation } from './training/evaluation/evaluate-policies.js';
export { curriculumChecks, predictionsAfter } from './training/play/curriculum.js';
export { allFailedText, commonFailure, NO_SCORE, requireWorking } from './training/play/failures.js';
export { goesOnAfter, type Played } from './training/play/played.js';
export { drawTrace, evaluatedTasks, evaluationTasks, loadTasks, tasksOfStep } from './training/play/step-tasks.js';
export { namedMeans } from './training/record/recorder.js';
export { type Learner, withoutWaiting } from './training/run/learner.js';
export { rolloutSettings } from './training/run/playing.js';
export { demonstrationsOf, runSettings, stalenessOf } from './training/run/run-settings.js';
export {
  backendNamed,
  backendsOf,
  type OpenRun,
  type RunLog,
  type RunWarning,
  type Tasks,
  type TrainingRun,
} from './training/run/run-state.js';
export type { PlannedRollouts, Requirement, Signal, SignalSettings } from './training/run/signal.js';
export { firstWeights, trainedModels } from './training/run/trained-models.js';
export { chainsOf, type TurnChain } from './training/samples/chains.js';
export { scoreTurns, trainingSample } from './training/samples/training-samples.js';
export { wantedSignals } from './training/signals/index.js';
export type { ReferenceStore } from './training/signals/open-training.js';
export { trainingRun } from './training/signals/training-run.js';
export { comparedEpisodes } from './training/stability/agent-health.js';
export { measureInflation } from './training/stability/measured-inflation.js';
export { remedies, remedyForSameness, remedyOfEqualSamples } from './training/stability/silence.js';
export { firstProgress, type Progress } from './training/state/progress.js';
export { DEFAULT_SCORE, stopChecks } from './training/state/stop-rules.js';
export { estimateAdvantages, learnStep } from './training/step/learn-step.js';
export { playStep } from './training/step/play-step.js';
export { trainTeam } from './training/train.js';
export type { Learnt } from './training/update/update-policies.js';
export type { PolicyUpdate } from './training/update/update-result.js';
export { traceBatch, trainWarmStart } from './training/warm-start/supervised.js';
