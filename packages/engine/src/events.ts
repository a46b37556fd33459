/** The events of a run's log, and how stored JSON is read. */

export type { CheckpointEvent, EventStamp, Preparing } from './base/core/events.js';
export {
  type AgentEvaluation,
  type AgentHealth,
  type AgentStep,
  type BestEvaluation,
  type EarlyStop,
  type EpisodeFailed,
  EVENT_VERSION,
  type EvaluationEvent,
  type EvaluationScores,
  type EventBody,
  type GroupKinds,
  type Interval,
  type LossTerms,
  type MetricSink,
  type PolicyStep,
  type RunEvent,
  type RunFinished,
  type RunStarted,
  type ScoredEvaluation,
  type Spike,
  type Step,
  type Warmup,
  type Warning,
} from './base/core/events.js';
export { faultOf, laterVersion, parseStored } from './base/core/validation/parse-stored.js';
