/** Door of `teams`: tasks: files, arithmetic, grading, retrieval, metrics. */

export { judgesOf } from './scorers/scorers.js';
export { BENCHMARK, benchmarks } from './tasks/benchmarks.js';

export { checkedOptions } from './tasks/checked-options.js';

export { arithmetic, arithmeticSymbols } from './tasks/generated/arithmetic.js';

export { extractBoxed } from './tasks/grading/boxed.js';
export { gradeMath } from './tasks/grading/math.js';
export { exactMatch, tokenF1 } from './tasks/grading/question-answering.js';
export { listSource } from './tasks/list-source.js';
export {
  averageAtK,
  bestAtK,
  bootstrapInterval,
  majorityAtK,
  passAtK,
  scoreInterval,
} from './tasks/metrics.js';
export { mix } from './tasks/mix.js';

export { isHeldOut } from './tasks/split.js';
