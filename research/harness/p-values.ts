/** One-sided p values of paired differences, and the adjustment of p values for how many there are. */

import { mean, standardDeviation } from '@drmas/engine/math';
import { within } from '../../src/runs/analysis/paired-interval.js';

/**
 * The one-sided p value of Student's t test that the mean of the values lies above a bound (Student 1908).
 * @param values [n], one for each pair
 * @param leastSpread The standard deviation is taken to be at least this: values on a coarse grid can be equal by
 *   chance
 * @returns 1 for fewer than two values, whose spread is not known
 */
export function oneSidedP(values: readonly number[], bound: number, leastSpread = 0): number {
  const n = values.length;
  if (n < 2) return 1;
  const spread = Math.max(standardDeviation(values), leastSpread);
  const distance = mean(values) - bound;
  if (spread === 0) return distance > 0 ? 0 : 1;
  const t = (distance * Math.sqrt(n)) / spread;
  const tail = (1 - within(Math.atan(Math.abs(t) / Math.sqrt(n - 1)), n - 1)) / 2;
  return Math.max(0, t > 0 ? tail : 1 - tail);
}

/**
 * Holm's step-down adjustment of p values for their number (Holm 1979). An adjusted value of at most .05 is significant
 * at a family-wise error rate of 5 %.
 * @returns the adjusted values, each at most 1, in the order of the input
 */
export function holm(ps: readonly number[]): number[] {
  const adjusted = new Array<number>(ps.length);
  let largest = 0;
  const inOrder = [...ps.keys()].sort((a, b) => (ps[a] as number) - (ps[b] as number));
  inOrder.forEach((index, rank) => {
    largest = Math.max(largest, Math.min(1, (ps.length - rank) * (ps[index] as number)));
    adjusted[index] = largest;
  });
  return adjusted;
}
