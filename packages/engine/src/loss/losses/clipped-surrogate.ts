/** The clipped surrogate of PPO, which several losses apply to ratios of their own. */
import { ArgumentError } from '../../errors.js';
import type { LossBatch, TokenLoss } from '../define-loss.js';

/**
 * The clipped surrogate: loss = max(-r A, -clip(r, low, high) A) (Schulman et al. 2017, eq. 7), with `low` and `high`
 * the bounds of the ratio r itself. For A < 0 a dual clip bounds it from above by -dualClip · A (Ye et al. 2020, eq.
 * 5).
 */
export function clippedSurrogate(low: number, high: number, dualClip: number): TokenLoss {
  return ({ ratio, advantage }, out) => {
    const positive = advantage > 0;
    out.clipped = positive ? ratio > high : ratio < low;
    const bounded = out.clipped ? (positive ? high : low) : ratio;
    out.clippedLower = !positive && bounded > dualClip;
    out.loss = -advantage * (out.clippedLower ? dualClip : bounded);
    out.gradient = out.clipped || out.clippedLower ? 0 : -advantage * ratio;
  };
}

interface ClipBounds {
  readonly clip: number;
  readonly clipLow?: number | undefined;
  readonly clipHigh?: number | undefined;
  readonly dualClip?: number | undefined;
}

export const ratioBounds = ({ clip, clipLow = clip, clipHigh = clip }: ClipBounds) => ({
  low: 1 - clipLow,
  high: 1 + clipHigh,
});

/** The clipped surrogate with these settings. @throws ArgumentError for a bound out of range */
export function clippedToken(clips: ClipBounds): TokenLoss {
  const { clip, clipLow = clip, clipHigh = clip, dualClip = Number.POSITIVE_INFINITY } = clips;
  requireBounds({ clip, clipLow, clipHigh });
  if (!(dualClip > 1)) throw new ArgumentError(`loss.dualClip must be greater than 1, got ${dualClip}`);
  const { low, high } = ratioBounds(clips);
  return clippedSurrogate(low, high, dualClip);
}

/**
 * The pre-pass of losses that divide by 1 + the clipping bias, c = the mean of 1{t clipped} r_t |A_t| over all written
 * tokens, weighted as the loss weighs them (turn-ppo.ts).
 */
function clippingBias(batch: LossBatch, clips: ClipBounds): { readonly clippingBias: number } {
  const token = clippedToken(clips);
  const outcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
  let leftOut = 0;
  batch.forEachToken((each, weight) => {
    token(each, outcome);
    if (outcome.clipped || outcome.clippedLower) leftOut += weight * each.ratio * Math.abs(each.advantage);
  });
  return { clippingBias: leftOut === 0 ? 0 : leftOut / batch.weight };
}

/** The parts of a declaration that divide a loss by 1 + its clipping bias. */
export const dampened = {
  prepare: clippingBias,
  divisor: ({ clippingBias: bias }: { readonly clippingBias: number }) => 1 + bias,
  metrics: { clippingBias: ({ clippingBias: bias }: { readonly clippingBias: number }) => bias },
};

/** @throws ArgumentError naming the first value that is no number >= 0 */
export function requireBounds(bounds: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(bounds))
    if (!(value >= 0)) throw new ArgumentError(`loss.${name} must be a number >= 0, got ${value}`);
}
