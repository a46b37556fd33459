import type { LossKind } from '../define-loss.js';
import type { LossSpec } from '../loss-spec.js';
import { clippedSurrogate, requireBound } from './ppo-clip.js';

/**
 * GSPO (Zheng et al. 2025, eqs. 5-7): the clipped surrogate with the sequence's ratio, the geometric mean of its tokens'
 * ratios; always the mean over sequences of the mean over tokens.
 */
export function gspo(spec: Extract<LossSpec, { type: 'gspo' }>): LossKind {
  requireBound('clipLow', spec.clipLow);
  requireBound('clipHigh', spec.clipHigh);
  return {
    ratio: 'sequence',
    aggregate: 'seq-mean-token-mean',
    token: clippedSurrogate(1 - spec.clipLow, 1 + spec.clipHigh, Number.POSITIVE_INFINITY),
  };
}
