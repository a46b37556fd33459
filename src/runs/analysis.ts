/** Door of `runs`: the analysis of finished and live runs. It needs no Node. */
export {
  type AgentStage,
  type AgentSummary,
  type ComparedRun,
  overTurns,
  type RunSummary,
  rewardOverTurns,
  summariseRun,
  summariseVariants,
  type VariantSummary,
} from './analysis/ablation-summary.js';
export { type AgentMeasure, agentMeasures, mainMeasures, valuesOf } from './analysis/agent-measures.js';
export { type ParetoPicture, type ParetoPoint, paretoPicture } from './analysis/aims/pareto-front.js';
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
export { EMBEDDED_ID, type EmbeddedReport, type EmbeddedRun, TextPool, unpack } from './analysis/packed-texts.js';
export { bandOf, type PairedDifference, pairedDifferences } from './analysis/paired-interval.js';
export { type RunFacts, RunFactsReader, type ScorePoint } from './analysis/run-facts.js';
export { type EventsByKind, emptyLog, extendLog } from './analysis/run-log.js';
export {
  type EpisodeDot,
  type GroupPage,
  type GroupQuery,
  type GroupRow,
  groupKinds,
  LONGEST_TEXT,
  MOST_TURNS,
  type ShownEpisode,
  type ShownGroup,
  type ShownGroupKind,
  type ShownToken,
  type ShownTurn,
  taskTitle,
  taskWords,
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
export { type Crossing, firstCrossings, howToMove, patientZero, unmovedAgents } from './analysis/trouble.js';
