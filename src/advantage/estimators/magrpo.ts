import { defineEstimator } from '../define-estimator.js';
import { discount, oneStepChoices } from '../named-choices.js';
import { measure, statisticsOfPool } from '../normalise.js';
import { stepReturns } from '../step-returns.js';

/**
 * The team's return from a joint turn on, R_t = r_t + gamma R_t+1, against its mean over the task's episodes at that
 * turn; all agents of the turn get it, nothing is divided. A joint turn is a turn index, or the turns that share an
 * `envStep`. Turns without `stepReward` earn with the episode's end, so that R_t is their `reward`; where others have
 * one, or gamma is not 1, a turn without it is refused by name.
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
  laws: ({ gamma }) => ({ shift: gamma === 0 ? ['reward', 'stepReward'] : ['reward'], takesScaleOut: false }),
  compute(batch, { gamma }, settings) {
    const atTheEnd = gamma === 1 && batch.turns.every(({ stepReward }) => stepReward === undefined);
    const returns = atTheEnd ? batch.rewards : stepReturns(batch, gamma);
    const members = batch.taskSteps;
    const pool = { turns: members.of, members, values: returns, wider: batch.all };
    return measure(returns, { mean: statisticsOfPool(pool, settings.singleton), spread: undefined }, settings);
  },
});
