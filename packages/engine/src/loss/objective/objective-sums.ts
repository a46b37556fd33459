/** The interface of an objective with any loss: from samples to the gradient of their log-probs. */

import type { TrainingSample } from '../../nouns.js';
import type { KlTerm } from '../kl.js';
import type { LossMetrics } from '../loss-metrics.js';
import type { AnyLoss } from '../loss-spec.js';

// The options of an update's objective.

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

/** A loss of some samples, before the log-probs of the current policy are known. */
export interface Objective {
  /** The samples that go through the model: identical samples once, samples that add nothing not at all. */
  readonly samples: readonly TrainingSample[];
  /** Whether `begin` needs the log-probs of all samples, because the loss of one sample depends on all of them. */
  readonly needsScores: boolean;
  /**
   * Begins the sums. The caller then adds each sample.
   * @param score Gives the log-probs [samples][T] of all `samples` under the current policy. It is called at once, and
   *   only if `needsScores` is true
   */
  begin(score: () => readonly Float32Array[]): ObjectiveSums;
}

/** The sums of an objective. The caller adds the samples one by one. */
export interface ObjectiveSums {
  /**
   * Adds the sample at this position of `samples` to the sums, each once, in order.
   * @param logprobs [T], of the current policy
   * @returns d loss / d logprobs [T], 0 where masked
   */
  gradient(index: number, logprobs: Float32Array): Float32Array;
  /**
   * Defined if the loss depends on the policy's entropy too: adds it, once for each sample, in order.
   * @param entropies [T], of the current policy at the sample's temperature, nats
   * @returns d loss / d entropy [T], 0 where masked
   */
  readonly entropyGradient?: (index: number, entropies: Float32Array) => Float32Array;
  /**
   * The loss and its metrics over the samples added so far; the ratios of all samples if the options keep them.
   * @param entropies [samples][T], of the current policy, nats, for the mean of the entropy
   */
  result(entropies?: readonly Float32Array[]): {
    readonly loss: number;
    readonly metrics: LossMetrics;
    readonly ratios?: SampleRatios;
  };
}

/** The tokens of a sample in an update. */
export interface TokenRatios {
  /** The importance ratio of the loss, the token's own or the one that it shares; 0 where masked. */
  readonly ratios: Float32Array; // [T]
  /** 1 where the clipped side of the objective, or the bound of the dual clip, was the one that counted. */
  readonly clipped: Uint8Array; // [T]
}

/** One entry a sample of the objective; undefined for a sample that adds nothing. */
export type SampleRatios = readonly (TokenRatios | undefined)[];
