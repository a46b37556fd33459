import { defineEstimator, type Moved } from '../define-estimator.js';
import { discount, oneStepChoices } from '../named-choices.js';
import { measure, statisticsOfPool } from '../normalise.js';
import { stepReturns } from '../step-returns.js';

/**
 * The team's return from a joint turn on, R_t = r_t + gamma R_t+1, minus its mean over the task's episodes at that
 * turn. All agents of the turn get the same number, without division. A joint turn is a turn index, or the turns that
 * share an `envStep`. If no turn has a `stepReward` and gamma is 1, the reward arrives with the episode's end, so R_t
 * is the turn's `reward`. Otherwise a turn without `stepReward` is an error.
 */
export const magrpo = defineEstimator({
  type: 'magrpo',
  schema: {
    gamma: discount.default(1).describe("The discount of later turns' rewards."),
    ...oneStepChoices,
  },
  source: 'Liu et al. 2025, arXiv 2508.04652',
  formula: 'R - mean of R over (task, step)',
  use: 'agents that act in rounds and share every reward ([what differs](#at-grpo-and-magrpo))',
  traits: { compared: 'on request' },
  laws: ({ gamma, singleton }) => {
    const shift: readonly Moved[] = gamma === 0 ? ['reward', 'stepReward'] : ['reward'];
    return { shift: singleton === 'raw' ? [] : shift, takesScaleOut: false };
  },
  compute(batch, { gamma }, settings) {
    const atTheEnd = gamma === 1 && batch.turns.every(({ stepReward }) => stepReward === undefined);
    const returns = atTheEnd ? batch.rewards : stepReturns(batch, gamma);
    const members = batch.taskSteps;
    const pool = { turns: members.of, members, values: returns, wider: batch.all };
    return measure(returns, { mean: statisticsOfPool(pool, settings.singleton), spread: undefined }, settings);
  },
});
