/** The exact test of paired differences: all assignments of signs to them. */

import { ArgumentError } from '@drmas/engine/errors';

/** The most pairs of `signFlipP`. */
export const MOST_EXACT_PAIRS = 40;

/**
 * The exact two-sided p value of the sign-flip test: the share of the 2^n assignments of signs to the differences whose
 * sum lies at least as far from 0 as the observed sum (Fisher 1935). It assumes that a difference is symmetric about 0
 * if there is no effect, and no distribution. With n pairs it is at least 2^(1 - n).
 * @param differences [n], one for each pair
 * @returns 1 for an empty list
 * @throws ArgumentError for more than 40 pairs, whose assignments are too many
 */
export function signFlipP(differences: readonly number[]): number {
  const n = differences.length;
  if (n > MOST_EXACT_PAIRS)
    throw new ArgumentError(`the sign-flip test takes at most ${MOST_EXACT_PAIRS} pairs, got ${n}`);
  const observed = Math.abs(differences.reduce((sum, value) => sum + value, 0));
  const rounding = 1e-9 * differences.reduce((sum, value) => sum + Math.abs(value), 0);
  const least = observed - rounding;
  if (least <= 0) return 1;
  // Each sum is one of the first half plus one of the second, so sorted sums of halves are enough to count: as one goes
  // up, the least that it needs of the other goes down.
  const [first, second] = [signedSums(differences.slice(0, n >> 1)), signedSums(differences.slice(n >> 1))];
  let above = 0;
  let from = second.length;
  for (const sum of first) {
    while (from > 0 && sum + (second[from - 1] as number) >= least) from--;
    above += second.length - from;
  }
  return (2 * above) / 2 ** n; // as many sums lie as far below 0
}

/** The sums of all assignments of signs, in ascending order: [2^n]. */
function signedSums(values: readonly number[]): Float64Array {
  const sums = new Float64Array(2 ** values.length);
  values.forEach((value, i) => {
    const count = 2 ** i;
    for (let k = count - 1; k >= 0; k--) {
      const sum = sums[k] as number;
      sums[k] = sum + value;
      sums[k + count] = sum - value;
    }
  });
  return sums.sort();
}
