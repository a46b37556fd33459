import type { TurnRecord } from '../core/advantage.js';
import { type Estimator, openEstimator } from './estimators/index.js';
import { TurnBatch } from './turn-batch.js';

/**
 * Advantages of the turns of one step, in the order of the turns: a number for all of a turn's tokens, or (token-level
 * estimators) an array with one number a token. Linear in the number of turns; the turns are left as they are.
 * @throws ArgumentError naming the turn whose reward (or whatever else the estimator needs) is missing or not a finite
 *   number, or the choice of the estimator that is out of range
 */
export function estimateAdvantages(turns: readonly TurnRecord[], estimator: Estimator): (number | number[])[] {
  const advantages = openEstimator(estimator).compute(new TurnBatch(turns));
  const list = new Array<number | number[]>(turns.length);
  // A loop: `Array.from` of a typed array takes as long as the estimate itself.
  for (let i = 0; i < list.length; i++) list[i] = advantages[i] as number | number[];
  return list;
}

/**
 * What a critic is to predict at every token of every turn, for an estimator that uses one; undefined for the others.
 * @throws ArgumentError as `estimateAdvantages`
 */
export function estimateReturns(turns: readonly TurnRecord[], estimator: Estimator): number[][] | undefined {
  return openEstimator(estimator).returns(new TurnBatch(turns));
}
