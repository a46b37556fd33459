/** The options of what an update minimises, and the metrics of its loss. */

import type { LossTerms } from '../../core/events.js';
import type { KlTerm } from '../kl.js';
import type { LossSpec } from '../loss-spec.js';

export interface ForwardBackwardOptions {
  /**
   * `demonstrations`: the cross-entropy of every written token, whatever the advantages; divided by the normalizer
   * alone.
   */
  readonly loss: LossSpec | { readonly type: 'demonstrations' };
  /**
   * The divisor of the summed loss (`normalizerOfRows`), taken from the whole mini-batch, so that a mini-batch may be
   * submitted in parts and rows with advantage 0 may be left out.
   */
  readonly normalizer: number;
  /** Added to the loss; every sample then needs `referenceLogprobs`. Not with `demonstrations`. */
  readonly kl?: KlTerm;
  /**
   * Times the entropy of the policy at each token, at the sample's temperature and aggregated as the policy loss is, it
   * is taken off the loss. Only for a backend that trains on the `whole` distribution, and not with
   * `demonstrations`.
   */
  readonly entropyCoefficient?: number;
  /** Give the ratio of every token back. Not with `demonstrations`. */
  readonly keepRatios?: boolean;
}

/** Means and maxima over the response tokens that were sent. */
export interface LossMetrics extends LossTerms {
  /**
   * Share of tokens (of sequences, where these share a ratio) that took the clipped side of the objective (CISPO: whose
   * weight was clamped).
   */
  readonly clipFraction: number;
  /** Share of tokens (of sequences, where these share a ratio) that the dual clip stopped. */
  readonly clipFractionLower: number;
  /**
   * Mean of old log-prob - log-prob; old is the behaviour's or, where importance is corrected, the proximal policy's.
   */
  readonly approxKl: number;
  /**
   * Largest |ratio - 1| of a token; exactly 0 where both log-probs are equal, as on the first pass over on-policy
   * samples.
   */
  readonly maxRatioDeviation: number;
  /** Mean |log-prob - behaviour log-prob|. On the first pass: how far the sampler is from the trainer. */
  readonly logprobGap: number;
}
