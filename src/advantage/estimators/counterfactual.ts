import { z } from 'zod';
import { defineEstimator } from '../define-estimator.js';

/**
 * The turn's reward minus the mean reward of alternatives: episodes that were played again from this turn on, with
 * everything before it as it was. The turn is left out of its own baseline, so the baseline does not depend on what the
 * turn says and the gradient has no bias; what earlier turns did well or badly is in both, and cancels. A turn without
 * `baseline` is refused by name.
 */
export const counterfactual = defineEstimator({
  type: 'counterfactual',
  schema: {
    alternatives: z
      .int()
      .min(1)
      .default(1)
      .describe('How often each turn is played again from its context on. Each time is one more episode.'),
  },
  source: 'C3: contextual counterfactual credit, leave-one-out; COMA, Foerster et al. 2018',
  formula: 'r - mean of r over `alternatives` episodes that say something else from this turn on',
  use: 'many turns that share one reward: credit for single turns without a critic, for one more episode a turn',
  traits: { needs: 'branches' },
  laws: () => ({ shift: ['reward', 'baseline'], takesScaleOut: false }),
  compute(batch) {
    const baselines = batch.numbers('baseline', (turn) => turn.baseline);
    return batch.rewards.map((reward, i) => reward - (baselines[i] as number));
  },
});
