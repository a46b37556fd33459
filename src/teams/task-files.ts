/** Door of `teams`: tasks and passages from files and servers. */
export { type DemonstrationOptions, withDemonstrations } from './tasks/files/demonstrations.js';
export { file, jsonl, type QuestionAndAnswer } from './tasks/files/file-source.js';
export { type CorpusFields, readCorpus } from './tasks/retrieval/corpus.js';
export { type SearchR1Options, searchR1Retriever } from './tasks/retrieval/search-r1.js';
