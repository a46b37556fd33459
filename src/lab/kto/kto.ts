import { defineLoss, type KnownLoss, klOfRatio } from '@drmas/engine/loss';
import { z } from 'zod';

/**
 * KTO (Ethayarajh et al. 2024, arXiv 2402.01306, eq. 8): lambda - value, value = lambda σ(±beta (log r - z)) with r the
 * ratio of the response's probabilities and z the KL of the policy from the reference, a constant of the gradient. The
 * sign of the advantage says whether the response is desirable, its size how much it counts; advantages of ±1 are the
 * paper's labels.
 *
 * drmas differs from the paper in two points. The reference is the policy that wrote the response, so every step is a
 * round of iterated KTO, and the advantage is the only label. And z is the mean of klOfRatio over the responses that
 * are submitted together; the paper scores responses to other prompts under both policies.
 */
export const kto = defineLoss({
  type: 'kto',
  schema: {
    beta: z.number().gt(0).default(0.1).describe("The speed at which a response's value saturates with its log ratio."),
    desirable: z.number().gt(0).default(1).describe('The weight of a response with a positive advantage.'),
    undesirable: z.number().gt(0).default(1).describe('The weight of a response with a negative advantage.'),
  },
  source: 'KTO, Ethayarajh et al. 2024 (arXiv 2402.01306), eq. 8; our changes: see below',
  formula:
    'w abs(A) (1 - sigmoid(beta (log rp - z))) for A > 0, w abs(A) (1 - sigmoid(beta (z - log rp))) for A < 0; w is ' +
    '`desirable` or `undesirable`, z = sg(KL of the policy from the old one)',
  use: 'several updates a step, if rewards only tell good from bad, as between opponents',
  ratio: 'product',
  gradientOf: 'ratio',
  withoutAdvantage: 'scored',
  aggregate: 'seq-mean-token-mean',
  prepare(batch) {
    let [sum, responses] = [0, 0];
    batch.forEachRatio((logRatio, copies) => {
      sum += copies * klOfRatio(logRatio);
      responses += copies;
    });
    return { klBaseline: responses === 0 ? 0 : sum / responses };
  },
  token({ beta, desirable, undesirable }, { klBaseline }) {
    return ({ logRatio, advantage }, out) => {
      const sign = Math.sign(advantage);
      const weight = Math.abs(advantage) * (sign > 0 ? desirable : undesirable);
      const value = 1 / (1 + Math.exp(logRatio - klBaseline) ** (-sign * beta));
      out.loss = weight * (1 - value);
      out.gradient = -weight * sign * beta * value * (1 - value);
    };
  },
  metrics: { klBaseline: ({ klBaseline }) => klBaseline },
});

/** KTO as a recipe's list has it: with this module, which the engine's thread imports. */
export const ktoLoss: KnownLoss = { declaration: kto, module: import.meta.url };
