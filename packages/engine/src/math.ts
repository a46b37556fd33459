/** Random numbers and statistics. */

export type { KeyPart } from './base/core/random.js';
export {
  digestOfIds,
  permutation,
  type RandomKey,
  RandomStream,
  randomKey,
  uniformAt,
} from './base/core/random.js';
export {
  differ,
  finite,
  largest,
  mean,
  meanOfFinite,
  meansByKey,
  median,
  standardDeviation,
  weightedMean,
  whiten,
} from './base/core/statistics.js';
