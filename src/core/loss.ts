/** How token losses become one number. `norm` divides each row's sum by the width of the batch (Dr. GRPO). */
export type Aggregation = 'token-mean' | 'seq-mean-token-sum' | 'seq-mean-token-mean' | 'seq-mean-token-sum-norm';

/** A policy loss, named and with its numbers; `policyLoss` computes it. */
export type LossSpec =
  | {
      readonly type: 'ppo-clip';
      readonly clip: number;
      readonly clipLow?: number | undefined;
      readonly clipHigh?: number | undefined;
      /** Upper bound of the ratio's effect for negative advantages (dual clip), greater than 1. */
      readonly dualClip?: number | undefined;
      readonly aggregate: Aggregation;
    }
  | { readonly type: 'cispo'; readonly clipLow: number; readonly clipHigh: number; readonly aggregate: Aggregation }
  | { readonly type: 'gspo'; readonly clipLow: number; readonly clipHigh: number };
