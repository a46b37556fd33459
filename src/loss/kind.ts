import type { Aggregation } from '../core/loss.js';

/** What one token contributes. */
export interface TokenOutcome {
  loss: number;
  /** d loss / d log ratio (CISPO: d loss / d logprob), before aggregation. */
  gradient: number;
  /** The clipped side of the objective was the one taken. */
  clipped: boolean;
  /** The bound of the dual clip was the one taken. */
  clippedLower: boolean;
}

/**
 * Writes the outcome of one token with advantage A != 0. Must be positively homogeneous in the advantage: c · A gives c
 * times the loss and gradient for c > 0. The exact merging of identical rows (merge.ts) rests on it, and a token whose
 * advantage is 0 is never asked about: it adds nothing.
 */
export type TokenLoss = (ratio: number, advantage: number, logprob: number, out: TokenOutcome) => void;

/** A policy loss, ready to be applied to rows. */
export interface LossKind {
  /** Whether every token has its own ratio, or a sequence's tokens share the geometric mean of theirs. */
  readonly ratio: 'token' | 'sequence';
  readonly aggregate: Aggregation;
  readonly token: TokenLoss;
}
