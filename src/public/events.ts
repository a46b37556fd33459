/** The names of `drmas/events`: the events of a run, and trackers that receive them. */

export type {
  AgentEvaluation,
  AgentHealth,
  AgentStep,
  BestEvaluation as BestEvaluationEvent,
  CheckpointEvent,
  EarlyStop as EarlyStopEvent,
  EpisodeFailed as EpisodeFailedEvent,
  EvaluationEvent,
  EvaluationScores,
  EventBody,
  EventStamp,
  GroupKinds,
  Interval,
  MetricSink,
  PolicyStep,
  Preparing as PreparingEvent,
  RunEvent,
  RunFinished as RunFinishedEvent,
  RunStarted as RunStartedEvent,
  Spike as SpikeEvent,
  Step as StepEvent,
  Warmup as WarmupEvent,
  Warning as WarningEvent,
} from '@drmas/engine/events';
export type {
  AnsweredTurn,
  BegunEpisode,
  CallTime,
  EpisodeListener,
  EventSink,
  Phase,
  PlayProgress,
  Price,
  Round,
  RunListener,
  RunSpending,
  Spending,
  TokenCount,
  TrainingBudget,
} from '@drmas/engine/host';
export {
  defineTracker,
  type TrackedRun,
  type TrackerDeclaration,
  type TrackerDefinition,
  type TrackerPlugin,
} from '@drmas/engine/host';
export type {
  Episode,
  EpisodeGroup,
  Failure,
  FailureReason,
  FinishReason,
  History,
  LogEntry,
  Score,
  Turn,
} from '@drmas/engine/nouns';
export type {
  AgentStage,
  AgentSummary,
  Curve,
  RunSummary,
  VariantSpending,
  VariantSummary,
} from '../runs/analysis/ablation-summary.js';
export type { ParetoPicture, ParetoPoint } from '../runs/analysis/aims/pareto-front.js';
export type { PairedDifference } from '../runs/analysis/paired-interval.js';
