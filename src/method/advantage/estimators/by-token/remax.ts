import { defineEstimator } from '../../define-estimator.js';
import { discountedSums, tokenRewards } from './token-rewards.js';

/** Returns minus the reward of the greedy response. A turn without `baseline` is an error. */
export const remax = defineEstimator({
  type: 'remax',
  schema: {},
  source: 'ReMax, Li et al. 2023',
  formula: 'return of each token - `baseline`',
  use: 'a greedy episode as the baseline: no groups needed, one more episode a task',
  traits: { needs: 'greedy' },
  laws: () => ({ shift: ['reward', 'baseline'], takesScaleOut: false }),
  compute(batch) {
    const baselines = batch.numbers('baseline', (turn) => turn.baseline);
    return tokenRewards(batch).map((rewards, i) =>
      discountedSums(rewards, 1).map((value) => value - (baselines[i] as number)),
    );
  },
});
