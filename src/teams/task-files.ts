/** Door of `teams`: tasks, passages, worlds and tools from files and servers. */
export { type DemonstrationOptions, withDemonstrations } from './tasks/files/demonstrations.js';
export { textChunks } from './tasks/files/file-rows.js';
export { file, jsonl, type QuestionAndAnswer } from './tasks/files/file-source.js';
export { hub } from './tasks/files/hub-source.js';
export { type CorpusFields, readCorpus } from './tasks/retrieval/corpus.js';
export { type SearchR1Options, searchR1Retriever } from './tasks/retrieval/search-r1.js';
export {
  type McpTools,
  type McpToolsOptions,
  mcpTools,
  type ToolCommand,
  type ToolSession,
} from './tasks/worlds/mcp-tools.js';
export {
  type OpenEnv,
  type OpenEnvOptions,
  openEnv,
  type WorldSchema,
  type WorldSchemas,
  type WorldTask,
} from './tasks/worlds/open-env.js';
export type { Observation, World, WorldStep } from './tasks/worlds/world.js';
