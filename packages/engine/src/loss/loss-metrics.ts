/** The metrics of a loss: those that every loss has, and those that a loss adds. */
import type { LossTerms } from '../events.js';

/**
 * Means and maxima over the response tokens that were measured: the tokens of each row (a turn) that has an advantage
 * or that another term of the loss needs. Identical samples count as often as they occur, so that the metrics of a step
 * do not depend on its mini-batches. Without a measured token, all but the counts are absent.
 */
export interface LossMetrics extends LossTerms {
  /** The number of tokens that the means are over. */
  readonly tokens: number;
  /** The number of ratios that the shares of clipping are over: tokens, or the turns or sequences that share one. */
  readonly units: number;
  /**
   * The share of tokens (of sequences, if these share a ratio) whose loss was the clipped side of the objective. For
   * CISPO: whose weight was clamped.
   */
  readonly clipFraction?: number;
  /** The share of tokens (of sequences, if these share a ratio) whose loss the dual clip bounded. */
  readonly clipFractionLower?: number;
  /**
   * The mean of old log-prob - log-prob. The old policy is the one that wrote the token or, with importance correction,
   * the one before the update.
   */
  readonly approxKl?: number;
  /** The largest |ratio - 1| of a token; exactly 0 if both log-probs are equal, as in the first pass on policy. */
  readonly maxRatioDeviation?: number;
  /** The mean of |log-prob - behaviour log-prob|. In the first pass it measures how sampler and trainer differ. */
  readonly logprobGap?: number;
  /** The policy's mean entropy at these tokens, nats. Absent if the backend does not know it. */
  readonly entropy?: number;
  /** The metrics that the loss itself declares, by their names. */
  readonly [metric: string]: number | undefined;
}

/** The names that metrics of every loss, and of handles, may have. */
export const STANDARD_METRICS: ReadonlySet<string> = new Set([
  'tokens',
  'units',
  'clipFraction',
  'clipFractionLower',
  'approxKl',
  'maxRatioDeviation',
  'logprobGap',
  'importanceWeight',
  'importanceBeyond',
  'referenceKl',
  'entropy',
]);

/** The metrics without those that compare with log-probs of the time of sampling, for samples that have none. */
export function withoutComparisons(metrics: LossMetrics): LossMetrics {
  const { approxKl: _, maxRatioDeviation: __, logprobGap: ___, ...rest } = metrics;
  return rest;
}

/** The metrics that the loss itself declares, in its order. */
export function ownMetrics(metrics: LossMetrics): Readonly<Record<string, number>> {
  const declared = Object.entries(metrics).filter(
    ([name, value]) => value !== undefined && !STANDARD_METRICS.has(name),
  );
  return Object.fromEntries(declared) as Record<string, number>;
}
