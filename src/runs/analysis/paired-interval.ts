/** The mean of paired differences, its interval by Student's t over the pairs, and whether it shows a difference. */

import { mean, standardDeviation } from '@drmas/engine/math';
import type { RunSummary } from './ablation-summary.js';
import { MOST_EXACT_PAIRS, signFlipP } from './sign-flips.js';

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
export function within(angle: number, freedom: number): number {
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

/** The largest exact p value at which a difference counts as shown. */
export const LARGEST_P = 0.05;
/** With fewer pairs no exact p value is that small. */
export const LEAST_PAIRS = 6;

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
  /**
   * The exact p value of the sign-flip test, not adjusted for the number of differences. Absent for fewer
   * than two pairs, and for more than 40.
   */
  readonly p?: number;
  /**
   * A difference is shown if the interval leaves out 0 and p is at most .05: an interval alone can have no width, since
   * scores of a few tasks are equal by chance. `inside`: no difference was shown. `unknown`: with fewer than six pairs
   * p is above .05 whatever the pairs are.
   */
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
  const completed = new Map<string, Map<number, RunSummary>>();
  for (const run of runs) {
    if (run.status !== 'completed') continue;
    const ofVariant = completed.get(run.variant) ?? new Map<number, RunSummary>();
    completed.set(run.variant, ofVariant);
    if (!ofVariant.has(run.seed)) ofVariant.set(run.seed, run);
  }
  const scoreOf = (variant: string, seed: number) => {
    const run = completed.get(variant)?.get(seed);
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
      const pairs = differences.length;
      const p = pairs < 2 || pairs > MOST_EXACT_PAIRS ? undefined : signFlipP(differences);
      return {
        variant,
        baseline,
        pairs,
        better: differences.filter((difference) => difference > 0).length,
        ...interval,
        ...(p === undefined ? {} : { p }),
        verdict: pairs < LEAST_PAIRS ? 'unknown' : (shownDifference(interval, p) ?? 'inside'),
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

/** @param p The exact p value. Undefined for more pairs than it can be computed for: then the interval decides */
export function shownDifference({ interval }: PairedInterval, p: number | undefined): 'higher' | 'lower' | undefined {
  if (interval === undefined || (p !== undefined && p > LARGEST_P)) return undefined;
  return interval.low > 0 ? 'higher' : interval.high < 0 ? 'lower' : undefined;
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
