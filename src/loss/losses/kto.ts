import { z } from 'zod';
import { defineLoss } from '../define-loss.js';
import { requireBounds } from './clipped-surrogate.js';

/**
 * KTO (Ethayarajh et al. 2024, arXiv 2402.01306, eq. 8): lambda - value, value = lambda σ(±beta (log r - z)) with r the
 * ratio of the response's probabilities and z the KL of the policy from the reference, a constant of the gradient. The
 * sign of the advantage says whether the response is desirable, its size how much it counts; advantages of ±1 are the
 * paper's labels.
 *
 * Two things are ours. The reference is the policy that wrote the response, so that every step is a round of iterated
 * KTO; there is no label beside the advantage. And z is estimated from the responses that are submitted together
 * (klOfRatio), not from responses to other prompts, which would have to be scored under both policies.
 */
export const kto = defineLoss({
  type: 'kto',
  schema: {
    beta: z.number().gt(0).default(0.1).describe('How fast the value of a response saturates with its log ratio.'),
    desirable: z.number().gt(0).default(1).describe('What a response with a positive advantage weighs.'),
    undesirable: z.number().gt(0).default(1).describe('What a response with a negative advantage weighs.'),
  },
  source: 'KTO, Ethayarajh et al. 2024 (arXiv 2402.01306), eq. 8; see below for what is ours',
  formula:
    'w abs(A) (1 - sigmoid(beta (log rp - z))) for A > 0, w abs(A) (1 - sigmoid(beta (z - log rp))) for A < 0; w is ' +
    '`desirable` or `undesirable`, z = sg(KL of the policy from the old one)',
  use: 'several updates a step, where what is good or bad is known and not by how much, as between opponents',
  ratio: 'product',
  gradientOf: 'ratio',
  fromKl: true,
  aggregate: 'seq-mean-token-mean',
  token({ beta, desirable, undesirable }) {
    requireBounds({ beta, desirable, undesirable });
    return (ratio, advantage, _logprob, out) => {
      const sign = Math.sign(advantage);
      const weight = Math.abs(advantage) * (sign > 0 ? desirable : undesirable);
      const value = 1 / (1 + ratio ** (-sign * beta));
      out.clipped = false;
      out.clippedLower = false;
      out.loss = weight * (1 - value);
      out.gradient = -weight * sign * beta * value * (1 - value);
    };
  },
});
