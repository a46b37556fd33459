/** Door of `teams`: tasks, passages, worlds and tools from files and servers. */
export { withDemonstrations } from './tasks/files/demonstrations.js';
export { textChunks } from './tasks/files/file-rows.js';
export { file, jsonl } from './tasks/files/file-source.js';
