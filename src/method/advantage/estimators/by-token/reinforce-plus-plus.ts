import { whiten } from '@drmas/engine/math';
import { defineEstimator } from '../../define-estimator.js';
import { discount } from '../../named-choices.js';
import { discountedSums, everyToken, tokenRewards } from './token-rewards.js';

export const reinforcePlusPlus = defineEstimator({
  type: 'reinforce++',
  schema: {
    gamma: discount.default(1).describe("The discount of later tokens' rewards."),
  },
  source: 'REINFORCE++, Hu et al. 2025',
  formula: "discounted return of each token, whitened over the step's tokens",
  use: 'no groups at all',
  laws: ({ gamma }) => ({ shift: gamma === 1 ? ['reward'] : [], takesScaleOut: true, scaleError: 1e-3 }),
  compute(batch, { gamma }) {
    const returns = tokenRewards(batch).map((rewards) => discountedSums(rewards, gamma));
    return whiten(returns, everyToken(returns));
  },
});
