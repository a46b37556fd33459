/** The names of `drmas/tasks`: task sources, graders, retrieval, and helpers for a task source of your own. */
export { type FilePlace, ToolServerError, WorldError, type WorldErrorCode } from '@drmas/engine/errors';
export { type KeyPart, permutation, type RandomKey, RandomStream } from '@drmas/engine/math';
export type {
  DataSchema,
  Issue,
  LoadOptions,
  Split,
  Task,
  TaskOrigin,
  TaskSet,
  TaskSource,
  Trace,
} from '@drmas/engine/nouns';
export type { AgentAnswer, AgentQuestion } from '../runs/studies/demonstrate/speaker.js';
export { type RecordedEpisode, type RecordOptions, recordDemonstrations } from '../runs/traces/demonstration-rows.js';
export type { Scorer, ScorerInput, Verdict } from '../teams/scorers/foreign-scorers.js';
export {
  asScorer,
  fromScorers,
  type Judge,
  type NamedScorer,
  type ScorerReward,
  type ScorersOptions,
  type TeamScorer,
} from '../teams/scorers/scorers.js';
export { checkedOptions } from '../teams/tasks/checked-options.js';
export { type DemonstrationOptions, withDemonstrations } from '../teams/tasks/files/demonstrations.js';
export { file, jsonl, type QuestionAndAnswer } from '../teams/tasks/files/file-source.js';
export { hub } from '../teams/tasks/files/hub-source.js';
export type { FileRow } from '../teams/tasks/files/row-fields.js';
export { type ArithmeticTask, arithmetic, arithmeticSymbols } from '../teams/tasks/generated/arithmetic.js';
export { calculate } from '../teams/tasks/generated/calculator.js';
export { extractBoxed } from '../teams/tasks/grading/boxed.js';
export { gradeMath } from '../teams/tasks/grading/math.js';
export { exactMatch, tokenF1 } from '../teams/tasks/grading/question-answering.js';
export { averageAtK, type BootstrapInterval, bootstrapInterval, majorityAtK, passAtK } from '../teams/tasks/metrics.js';
export { mix } from '../teams/tasks/mix.js';
export { type Bm25Options, bm25Index, bm25Retriever } from '../teams/tasks/retrieval/bm25.js';
export { type CorpusFields, readCorpus } from '../teams/tasks/retrieval/corpus.js';
export type { Passage, Retriever, Search } from '../teams/tasks/retrieval/retriever.js';
export { type SearchR1Options, searchR1Retriever } from '../teams/tasks/retrieval/search-r1.js';
export { isHeldOut } from '../teams/tasks/split.js';
export type { ArithmeticOptions, FileOptions, HubOptions, JsonlOptions } from '../teams/tasks/task-options.js';
export {
  type McpTools,
  type McpToolsOptions,
  mcpTools,
  type ToolCommand,
  type ToolSession,
} from '../teams/tasks/worlds/mcp-tools.js';
export {
  type OpenEnv,
  type OpenEnvOptions,
  openEnv,
  type WorldSchema,
  type WorldSchemas,
  type WorldTask,
} from '../teams/tasks/worlds/open-env.js';
export type { Observation, World, WorldStep } from '../teams/tasks/worlds/world.js';
