import type { Aggregation } from './loss-spec.js';

/** What one token contributes. */
export interface TokenOutcome {
  loss: number;
  /** d loss / d log ratio (CISPO, cross-entropy: d loss / d logprob), before aggregation. */
  gradient: number;
  /** The clipped side of the objective was the one taken. */
  clipped: boolean;
  /** The bound of the dual clip was the one taken. */
  clippedLower: boolean;
}

/**
 * Writes the outcome of one token with advantage A != 0. Must be positively homogeneous in the advantage: c · A gives c
 * times the loss and gradient for c > 0. The exact merging of identical rows (merge.ts) and the correction of importance (a
 * weight on the advantage) rest on it, and a token whose advantage is 0 is never asked about: it adds nothing.
 */
export type TokenLoss = (ratio: number, advantage: number, logprob: number, out: TokenOutcome) => void;

/** A policy loss, ready to be applied to rows. */
export interface LossKind {
  /**
   * Whether every token has its own ratio, or those of a turn (a run of the mask) or of the whole sequence share the
   * geometric mean of theirs.
   */
  readonly ratio: 'token' | 'turn' | 'sequence';
  readonly aggregate: Aggregation;
  readonly token: TokenLoss;
  /** Divide by 1 + what clipping left out (st-ppo.ts). */
  readonly dampensClipping?: true;
  /** The mini-batch is the samples with an advantage alone: normalizer and other terms leave the others out. */
  readonly selects?: true;
}
