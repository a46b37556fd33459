/** Door of `base`: random numbers and statistics. */
export {
  digestOfIds,
  permutation,
  type RandomKey,
  RandomStream,
  randomKey,
  uniformAt,
} from './core/random.js';
export {
  differ,
  finite,
  mean,
  meansByKey,
  median,
  standardDeviation,
  weightedMean,
  whiten,
} from './core/statistics.js';
