import type { LossKind } from '../define-loss.js';
import type { LossSpec } from '../loss-spec.js';

/**
 * The cross-entropy of selected samples, -A log p: rejection-sampled fine-tuning (Yuan et al. 2023, "Scaling relationship on
 * learning mathematical reasoning"; RAFT, Dong et al. 2023) with the estimator `rejection`, whose advantage A is a sample's
 * weight. A mean over what was selected, not over what was played.
 */
export function crossEntropy(spec: Extract<LossSpec, { type: 'cross-entropy' }>): LossKind {
  return {
    ratio: 'token',
    aggregate: spec.aggregate,
    selects: true,
    token(_ratio, advantage, logprob, out) {
      out.clipped = false;
      out.clippedLower = false;
      out.loss = -advantage * logprob;
      out.gradient = -advantage;
    },
  };
}
