/** The names of `drmas/tasks`: task sources, graders, retrieval, and helpers for a task source of your own. */
export type { FilePlace, Issue } from '../base/errors.js';
export { type KeyPart, permutation, type RandomKey, RandomStream } from '../base/math.js';
export type { DataSchema, Split, Task, TaskSet, TaskSource, Trace } from '../base/nouns.js';
export {
  type CorpusFields,
  type DemonstrationOptions,
  file,
  jsonl,
  type QuestionAndAnswer,
  readCorpus,
  type SearchR1Options,
  searchR1Retriever,
  withDemonstrations,
} from '../teams/task-files.js';
export type {
  ArithmeticOptions,
  FileOptions,
  FileRow,
  JsonlOptions,
  Passage,
  Retriever,
  Search,
} from '../teams/tasks.js';
export {
  type ArithmeticTask,
  arithmetic,
  arithmeticSymbols,
  averageAtK,
  type Bm25Options,
  type BootstrapInterval,
  bestOfN,
  bm25Index,
  bm25Retriever,
  bootstrapInterval,
  calculate,
  checkedOptions,
  exactMatch,
  extractBoxed,
  gradeMath,
  isHeldOut,
  majorityAtK,
  majorityOfN,
  mix,
  normalizeAnswer,
  passAtK,
  tokenF1,
  worstOfN,
} from '../teams/tasks.js';
