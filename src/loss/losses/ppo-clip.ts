import { ArgumentError } from '../../core/errors.js';
import type { LossKind, TokenLoss } from '../define-loss.js';
import type { LossSpec } from '../loss-spec.js';

/**
 * The clipped surrogate: loss = max(-r A, -clip(r, low, high) A) (Schulman et al. 2017, eq. 7), with `low` and `high` the
 * bounds of the ratio r itself. For A < 0 a dual clip bounds it from above by -dualClip · A (Ye et al. 2020, eq. 5).
 */
export function clippedSurrogate(low: number, high: number, dualClip: number): TokenLoss {
  return (ratio, advantage, _logprob, out) => {
    const positive = advantage > 0;
    out.clipped = positive ? ratio > high : ratio < low;
    const bounded = out.clipped ? (positive ? high : low) : ratio;
    out.clippedLower = !positive && bounded > dualClip;
    out.loss = -advantage * (out.clippedLower ? dualClip : bounded);
    out.gradient = out.clipped || out.clippedLower ? 0 : -advantage * ratio;
  };
}

/** PPO-clip with an asymmetric clip where `clipLow` or `clipHigh` differ from `clip` (DAPO's clip-higher). */
export const ppoClip = (spec: Extract<LossSpec, { type: 'ppo-clip' }>): LossKind => clipped(spec, 'token');

/** The clipped surrogate with ratios of this extent. @throws ArgumentError for a bound out of range */
export function clipped(spec: Extract<LossSpec, { clip: number }>, ratio: LossKind['ratio']): LossKind {
  const low = spec.clipLow ?? spec.clip;
  const high = spec.clipHigh ?? spec.clip;
  requireBound('clip', spec.clip);
  requireBound('clipLow', low);
  requireBound('clipHigh', high);
  const dualClip = spec.dualClip ?? Number.POSITIVE_INFINITY;
  if (!(dualClip > 1)) throw new ArgumentError(`loss.dualClip must be greater than 1, got ${dualClip}`);
  return { ratio, aggregate: spec.aggregate, token: clippedSurrogate(1 - low, 1 + high, dualClip) };
}

/** @throws ArgumentError unless the value is a number >= 0 */
export function requireBound(name: string, value: number): void {
  if (!(value >= 0)) throw new ArgumentError(`loss.${name} must be a number >= 0, got ${value}`);
}
