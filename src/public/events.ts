/** The names of `drmas/events`: the events of a run, and trackers that receive them. */
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
} from '../base/core/episode.js';
export type { AgentEvaluation, EvaluationEvent, EvaluationScores, Interval } from '../base/core/evaluation.js';
export type {
  AgentStep,
  BestEvaluation as BestEvaluationEvent,
  CheckpointEvent,
  EarlyStop as EarlyStopEvent,
  EpisodeFailed as EpisodeFailedEvent,
  EventBody,
  EventStamp,
  MetricSink,
  PolicyStep,
  PoolMeeting,
  Preparing as PreparingEvent,
  RunEvent,
  RunFinished as RunFinishedEvent,
  Spike as SpikeEvent,
  Step as StepEvent,
  Warmup as WarmupEvent,
  Warning as WarningEvent,
} from '../base/core/events.js';
export type { AgentHealth, GroupKinds } from '../base/core/play/health-signs.js';
export type {
  AnsweredTurn,
  BegunEpisode,
  CallTime,
  EpisodeListener,
  EventSink,
  Phase,
  PlayProgress,
  Round,
  RunListener,
} from '../base/core/play/run-listener.js';
export type { RunStarted as RunStartedEvent } from '../base/core/play/run-started.js';
export type { RunSpending, TrainingBudget } from '../base/core/play/spending.js';
export type { Price, Spending, TokenCount } from '../base/core/play/token-count.js';
export {
  defineTracker,
  type TrackedRun,
  type TrackerDeclaration,
  type TrackerDefinition,
  type TrackerPlugin,
} from '../base/core/tracker-declaration.js';
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
