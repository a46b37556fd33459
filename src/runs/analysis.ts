/** Door of `runs`: the analysis of finished and live runs. It needs no Node. */
export {
  type AgentStage,
  type AgentSummary,
  type ComparedRun,
  type Curve,
  type RunSummary,
  summariseRun,
  summariseVariants,
  type VariantSpending,
  type VariantSummary,
} from './analysis/ablation-summary.js';
export { type AgentMeasure, agentMeasures, valuesOf } from './analysis/agent-measures.js';
export { type ParetoPicture, type ParetoPoint, paretoPicture } from './analysis/aims/pareto-front.js';
export { bandOf } from './analysis/band.js';
export { EMBEDDED_ID, type EmbeddedReport, type EmbeddedRun } from './analysis/embedded.js';
export type {
  EpisodeFile,
  FeedMessage,
  FeedMessages,
  ListedAblation,
  ListedRun,
  ReadableRun,
  RunState,
  ShownRecord,
} from './analysis/feed.js';
export {
  candidatesOf,
  type EpisodeFacts,
  type FactsGroup,
  groupPage,
  hasText,
  type MatchingGroup,
} from './analysis/group-filter.js';
export { TextPool, unpack } from './analysis/packed-texts.js';
export { type PairedDifference, pairedDifferences } from './analysis/paired-differences.js';
export type { PairedInterval } from './analysis/paired-interval.js';
export { type RunFacts, RunFactsReader, type ScorePoint } from './analysis/run-facts.js';
export { type EventsByKind, emptyLog, extendLog } from './analysis/run-log.js';
export {
  type EpisodeDot,
  type GroupPage,
  type GroupQuery,
  type GroupRow,
  groupKinds,
  LONGEST_TEXT,
  type ShownEpisode,
  type ShownGroup,
  type ShownGroupKind,
  type ShownToken,
  type ShownTurn,
} from './analysis/shown-episode.js';
export {
  type LoadedAgent,
  type TalkFacts,
  type TalkMessage,
  type TalkQuestion,
  type TalkSide,
  talkRoles,
} from './analysis/talk-protocol.js';
export { type Incident, incidentsOf } from './analysis/time-line.js';
export { type Crossing, firstCrossings, patientZero } from './analysis/trouble.js';
