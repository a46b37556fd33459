import { z } from 'zod';
import { defineEstimator } from '../../method/advantage.js';

/**
 * The turn's reward minus the mean reward of alternatives: episodes that were played again from this turn on, with the
 * same earlier turns. The turn itself does not count in its baseline. So the baseline does not depend on the turn's
 * text, and the gradient has no bias. The effect of earlier turns is in both and cancels. A turn without `baseline` is
 * an error.
 */
export const counterfactual = defineEstimator({
  type: 'counterfactual',
  schema: {
    alternatives: z
      .int()
      .min(1)
      .default(1)
      .describe(
        'How often drmas plays each turn again from its context on. Each time plays one more episode, whose earlier turns are replayed.',
      ),
  },
  source: 'C3: contextual counterfactual credit, leave-one-out; COMA, Foerster et al. 2018',
  formula: 'r - mean of r over `alternatives` episodes that are sampled again from this turn on',
  use: 'many turns that share one reward: credit for single turns without a critic, for one more episode a turn, which begins as the turn did',
  traits: { needs: 'branches' },
  laws: () => ({ shift: ['reward', 'baseline'], takesScaleOut: false }),
  compute(batch) {
    const baselines = batch.numbers('baseline', (turn) => turn.baseline);
    return batch.rewards.map((reward, i) => reward - (baselines[i] as number));
  },
});
