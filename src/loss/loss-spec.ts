/** How token losses become one number. `norm` divides each row's sum by the width of the batch (Dr. GRPO). */
export type Aggregation = 'token-mean' | 'seq-mean-token-sum' | 'seq-mean-token-mean' | 'seq-mean-token-sum-norm';

/**
 * A constant weight on every token's loss for samples that another policy wrote than the one the update begins with: a stale
 * version, or a sampler that rounds differently. ρ = exp(proximal log-prob - behaviour log-prob); the ratios of the loss are
 * then taken to the proximal policy.
 */
export interface ImportanceCorrection {
  /** The largest ρ that counts in full. */
  readonly cap: number;
  /** What becomes of a ρ above the cap: it counts as the cap, or its token not at all. */
  readonly beyond: 'truncate' | 'mask';
  /** ρ of each token, or of the whole response (the product of its tokens'). */
  readonly level: 'token' | 'sequence';
}

interface Correctable {
  readonly importanceCorrection?: ImportanceCorrection | undefined;
}

/** Bounds of a clipped surrogate. */
interface ClipChoices extends Correctable {
  readonly clip: number;
  readonly clipLow?: number | undefined;
  readonly clipHigh?: number | undefined;
  /** Upper bound of the ratio's effect for negative advantages (dual clip), greater than 1. */
  readonly dualClip?: number | undefined;
  readonly aggregate: Aggregation;
}

/** A policy loss, named and with its numbers; `policyLoss` computes it. */
export type LossSpec =
  | ({ readonly type: 'ppo-clip' } & ClipChoices)
  /** The same with one ratio a turn. */
  | ({ readonly type: 'turn-ppo' } & ClipChoices)
  /** `ppo-clip` and `turn-ppo`, held back by what clipping left out. */
  | ({ readonly type: 's-ppo' } & ClipChoices)
  | ({ readonly type: 'st-ppo' } & ClipChoices)
  | ({
      readonly type: 'cispo';
      readonly clipLow: number;
      readonly clipHigh: number;
      readonly aggregate: Aggregation;
    } & Correctable)
  | ({ readonly type: 'gspo'; readonly clipLow: number; readonly clipHigh: number } & Correctable)
  /** Of the samples with an advantage, which is their weight. */
  | { readonly type: 'cross-entropy'; readonly aggregate: Aggregation };

/** Estimators of KL(policy || reference) from sampled tokens; `klPenalty` has their formulas. */
export type KlKind = 'k1' | 'k2' | 'k3' | 'abs';

/** A term of the loss that holds a policy near its reference: coefficient · KL, aggregated as the policy loss is. */
export interface KlTerm {
  readonly kind: KlKind;
  readonly coefficient: number;
}
