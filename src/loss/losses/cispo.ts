import type { LossKind } from '../define-loss.js';
import type { LossSpec } from '../loss-spec.js';
import { requireBound } from './ppo-clip.js';

/**
 * CISPO (MiniMax-M1, 2025, eq. 4): loss = -w A log p with w = the ratio clamped to [1 - clipLow, 1 + clipHigh] and taken as
 * a constant, so that a clipped token keeps a gradient.
 */
export function cispo(spec: Extract<LossSpec, { type: 'cispo' }>): LossKind {
  requireBound('clipLow', spec.clipLow);
  requireBound('clipHigh', spec.clipHigh);
  const low = 1 - spec.clipLow;
  const high = 1 + spec.clipHigh;
  return {
    ratio: 'token',
    aggregate: spec.aggregate,
    token(ratio, advantage, logprob, out) {
      const weight = Math.min(Math.max(ratio, low), high);
      out.clipped = weight !== ratio;
      out.clippedLower = false;
      out.loss = -weight * advantage * logprob;
      out.gradient = -weight * advantage;
    },
  };
}
