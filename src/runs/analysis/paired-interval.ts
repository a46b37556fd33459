/** The interval of a mean of paired differences: Student's t over the pairs. */
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
