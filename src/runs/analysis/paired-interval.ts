/** The interval of a mean of paired differences: Student's t over the pairs. */

import { ArgumentError } from '@drmas/engine/errors';
import { mean, standardDeviation } from '@drmas/engine/math';
import type { RunSummary } from './ablation-summary.js';

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

const MOST_EXACT_PAIRS = 40;

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

/**
 * The difference of the final score or of a metric, variant minus baseline, over the pairs in which both completed and
 * have it.
 */
export interface PairedDifference extends PairedInterval {
  readonly variant: string;
  readonly baseline: string;
  readonly pairs: number;
  /** The number of pairs in which the variant was better. */
  readonly better: number;
  /** `inside`: the interval contains 0, so no difference was shown. `unknown`: there are fewer than two pairs. */
  readonly verdict: 'higher' | 'lower' | 'inside' | 'unknown';
}

/**
 * The differences between each variant and the baseline.
 * @param pick Returns the number to compare: the score, or a metric that a run may lack
 */
export function pairedDifferences(
  runs: readonly RunSummary[],
  variants: readonly string[],
  baseline: string,
  pick: (run: RunSummary) => number | undefined = ({ score }) => score,
): PairedDifference[] {
  const scoreOf = (variant: string, seed: number) => {
    const run = runs.find((run) => run.variant === variant && run.seed === seed && run.status === 'completed');
    return run && pick(run);
  };
  const seeds = [...new Set(runs.map(({ seed }) => seed))];
  return variants
    .filter((variant) => variant !== baseline)
    .map((variant) => {
      const differences = seeds.flatMap((seed) => {
        const [score, other] = [scoreOf(variant, seed), scoreOf(baseline, seed)];
        return score === undefined || other === undefined ? [] : [score - other];
      });
      const interval = pairedInterval(differences);
      return {
        variant,
        baseline,
        pairs: differences.length,
        better: differences.filter((difference) => difference > 0).length,
        ...interval,
        verdict: verdictOf(interval),
      };
    });
}

export function metricDifferences(
  runs: readonly RunSummary[],
  variants: readonly string[],
  baseline: string,
): Record<string, PairedDifference[]> {
  const names = [...new Set(runs.flatMap(({ metrics = {} }) => Object.keys(metrics)))].sort();
  return Object.fromEntries(
    names.map((name) => [name, pairedDifferences(runs, variants, baseline, ({ metrics }) => metrics?.[name])]),
  );
}

function verdictOf({ interval }: PairedInterval): PairedDifference['verdict'] {
  if (interval === undefined) return 'unknown';
  if (interval.low > 0) return 'higher';
  return interval.high < 0 ? 'lower' : 'inside';
}

interface BandPoint {
  readonly x: number;
  readonly y: number;
  readonly low: number;
  readonly high: number;
}

/** Mean, minimum and maximum at each step that all runs have. Runs without any point are ignored. */
export function bandOf(runs: readonly (readonly { readonly x: number; readonly y: number }[])[]): BandPoint[] {
  const begun = runs.filter((points) => points.length > 0);
  const [first, ...others] = begun.map((points) => new Map(points.map(({ x, y }) => [x, y])));
  if (first === undefined) return [];
  return [...first].flatMap(([x, y]) => {
    const values = [y, ...others.flatMap((points) => points.get(x) ?? [])];
    if (values.length < begun.length) return [];
    return [{ x, y: mean(values), low: Math.min(...values), high: Math.max(...values) }];
  });
}
