/** Door of `teams`: tasks: files, arithmetic, grading, retrieval, metrics. */
export type { Scorer, ScorerInput, Verdict } from './scorers/foreign-scorers.js';
export {
  asScorer,
  fromScorers,
  type Judge,
  judgesOf,
  type NamedScorer,
  type ScorerReward,
  type ScorersOptions,
  type TeamScorer,
} from './scorers/scorers.js';
export { BENCHMARK, benchmarks } from './tasks/benchmarks.js';
export { bestOfN, majorityOfN, worstOfN } from './tasks/best-of-n.js';
export { checkedOptions } from './tasks/checked-options.js';
export type { FileRow } from './tasks/files/row-fields.js';
export { type ArithmeticTask, arithmetic, arithmeticSymbols } from './tasks/generated/arithmetic.js';
export { calculate } from './tasks/generated/calculator.js';
export { extractBoxed } from './tasks/grading/boxed.js';
export { gradeMath } from './tasks/grading/math.js';
export { exactMatch, normalizeAnswer, tokenF1 } from './tasks/grading/question-answering.js';
export {
  averageAtK,
  type BootstrapInterval,
  bestAtK,
  bootstrapInterval,
  majorityAtK,
  passAtK,
} from './tasks/metrics.js';
export { mix } from './tasks/mix.js';
export { type Bm25Options, bm25Index, bm25Retriever } from './tasks/retrieval/bm25.js';
export type { Passage, Retriever, Search } from './tasks/retrieval/retriever.js';
export { isHeldOut } from './tasks/split.js';
export type {
  ArithmeticOptions,
  FileOptions,
  HubOptions,
  JsonlOptions,
} from './tasks/task-options.js';
