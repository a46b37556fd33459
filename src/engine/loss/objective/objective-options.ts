/** The options of an update's objective. */
import type { KlTerm } from '../kl.js';
import type { AnyLoss } from '../loss-spec.js';

/** The objective of `forwardBackward`. */
export interface ForwardBackwardOptions {
  /**
   * `demonstrations`: the cross-entropy of every written token, divided by the normalizer. It does not read advantages.
   */
  readonly loss: AnyLoss | { readonly type: 'demonstrations' };
  /**
   * The divisor of the summed loss (`normalizerOfRows`) for the whole mini-batch. With it a mini-batch may be submitted
   * in parts, and rows with advantage 0 may be left out.
   */
  readonly normalizer: number;
  /** Added to the loss; every sample then needs `referenceLogprobs`. Not with `demonstrations`. */
  readonly kl?: KlTerm;
  /**
   * The coefficient of the entropy bonus: the loss falls by this times the policy's entropy at each token, at the
   * sample's temperature, aggregated as the policy loss is. It needs a backend that trains on the `whole` distribution.
   * Not with `demonstrations`.
   */
  readonly entropyCoefficient?: number;
  /** Whether the result has the ratio of every token. Not with `demonstrations`. */
  readonly keepRatios?: boolean;
}
