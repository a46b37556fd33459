/** The interval of a mean of paired differences: Student's t over the pairs. */
import { ArgumentError } from '../../base/errors.js';
import { mean, standardDeviation } from '../../base/math.js';

export interface PairedInterval {
  readonly mean: number;
  /** The interval. Absent for fewer than two pairs, whose spread is not known. */
  readonly interval?: { readonly low: number; readonly high: number; readonly level: number };
}

/**
 * The mean of the differences, and the interval mean +- t(level, n - 1) s / sqrt(n) (Student 1908). Not a bootstrap:
 * with as few pairs as in an ablation, the percentile bootstrap is far too narrow.
 */
export function pairedInterval(differences: readonly number[], level = 0.95): PairedInterval {
  const centre = mean(differences);
  const n = differences.length;
  if (n < 2) return { mean: centre };
  const half = (quantile(level, n - 1) * standardDeviation(differences)) / Math.sqrt(n);
  return { mean: centre, interval: { low: centre - half, high: centre + half, level } };
}

const MOST_EXACT_PAIRS = 24;

/**
 * The exact two-sided p value of the sign-flip test: the share of the 2^n assignments of signs to the differences whose
 * sum lies at least as far from 0 as the observed sum (Fisher 1935). It assumes that a difference is symmetric about 0
 * if there is no effect, and no distribution. With n pairs it is at least 2^(1 - n).
 * @param differences [n], one for each pair
 * @returns 1 for an empty list
 * @throws ArgumentError for more than 24 pairs, whose assignments are too many to enumerate
 */
export function signFlipP(differences: readonly number[]): number {
  const n = differences.length;
  if (n > MOST_EXACT_PAIRS) {
    throw new ArgumentError(`the sign-flip test enumerates at most ${MOST_EXACT_PAIRS} pairs, got ${n}`);
  }
  const observed = Math.abs(differences.reduce((sum, value) => sum + value, 0));
  const rounding = 1e-9 * differences.reduce((sum, value) => sum + Math.abs(value), 0);
  let far = 0;
  for (let signs = 0; signs < 2 ** n; signs++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += (signs >> i) & 1 ? -(differences[i] as number) : (differences[i] as number);
    if (Math.abs(sum) >= observed - rounding) far++;
  }
  return far / 2 ** n;
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

/**
 * The t with P(|T| <= t) = level, by bisection over the angle atan(t / sqrt(freedom)). The probability is smooth in the
 * angle.
 */
function quantile(level: number, freedom: number): number {
  let [low, high] = [0, Math.PI / 2];
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (within(middle, freedom) < level) low = middle;
    else high = middle;
  }
  return Math.tan(low) * Math.sqrt(freedom);
}

/**
 * The probability P(|T| <= t) for integer degrees of freedom, with t as an angle (Abramowitz and Stegun 1964, 26.7.3
 * and
 * 26.7.4).
 */
function within(angle: number, freedom: number): number {
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  const odd = freedom % 2 === 1;
  let term = odd ? cosine : 1;
  let sum = 0;
  for (let k = odd ? 3 : 2; k <= freedom; k += 2) {
    sum += term;
    term *= cosine ** 2 * ((k - 1) / k);
  }
  return odd ? (2 / Math.PI) * (angle + sine * sum) : sine * sum;
}
