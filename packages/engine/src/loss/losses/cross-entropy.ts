import { defineLoss } from '../define-loss.js';
import { aggregate } from '../loss-settings.js';

/**
 * The cross-entropy of selected samples, -A log p: rejection-sampled fine-tuning (Yuan et al. 2023, "Scaling
 * relationship on learning mathematical reasoning"; RAFT, Dong et al. 2023) with the estimator `rejection`, whose
 * advantage A is the weight of a sample. The mean is over the selected samples, not over all samples.
 */
export const crossEntropy = defineLoss({
  type: 'cross-entropy',
  schema: aggregate('token-mean'),
  source: 'rejection-sampled fine-tuning: Yuan et al. 2023; RAFT, Dong et al. 2023',
  formula: '-A log p, over the samples with A > 0 only',
  use: 'a simple, stable baseline: imitate what worked',
  ratio: 'token',
  gradientOf: 'logprob',
  withoutAdvantage: 'excluded',
  weighsDemonstrations: true,
  token:
    () =>
    ({ advantage, logprob }, out) => {
      out.loss = -advantage * logprob;
      out.gradient = -advantage;
    },
});
