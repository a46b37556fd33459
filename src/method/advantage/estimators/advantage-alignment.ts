import { ArgumentError } from '@drmas/engine/errors';
import { z } from 'zod';
import { defineEstimator } from '../define-estimator.js';
import { parentsOf, statisticsOf } from '../groups.js';
import { discount, oneStepChoices, spreadChoices } from '../named-choices.js';
import { measure, statisticsOfPool } from '../normalise.js';
import { stepReturns } from '../step-returns.js';
import type { TurnBatch } from '../turn-batch.js';

/**
 * Advantage Alignment (Duque et al. 2025, arXiv 2406.14662) with a group as the baseline instead of a critic. A is the
 * agent's own discounted return from the step on, minus the mean return of the same agent at the same step in the
 * task's episodes. Added to A is the product of the agent's earlier advantages and the other agents' advantages in this
 * step. If the past went well for the agent, an action that helps the others becomes more likely. If it went badly, an
 * action that hurts them does. A turn without `envStep` or `agentStepReward` is an error.
 */
export const advantageAlignment = defineEstimator({
  type: 'advantage-alignment',
  schema: {
    weight: z
      .number()
      .min(0)
      .default(1)
      .describe(
        "The weight of the product of past advantages and other agents' advantages. 0: each agent ignores the others.",
      ),
    gamma: discount.default(0.9).describe("The discount of later steps' rewards and of earlier steps' advantages."),
    spread: z
      .enum(['none', 'group'])
      .default('none')
      .describe('Whether advantages are divided by the standard deviation of their group before they are multiplied.'),
    ...spreadChoices,
    ...oneStepChoices,
  },
  source: 'Advantage Alignment, Duque et al. 2025, arXiv 2406.14662, with a group in place of a critic',
  formula:
    "A + `weight` gamma (sum over the agent's earlier steps k of gamma^(t - k) A of k) (sum of the others' A in step " +
    't), A = Ra - mean of Ra over (task, agent, step), Ra as R of the agent alone; ' +
    "`spread: 'group'`: A / (std of Ra there + eps)",
  use:
    'agents whose own rewards conflict, over several rounds ([what it needs](#advantage-alignment)). Needs `envStep`, ' +
    '`agentStepReward`',
  laws: ({ weight, gamma, spread, singleton }) => {
    const isRaw = singleton === 'raw';
    // The product of two undivided advantages grows with the square of the rewards.
    const hasNoScale = spread === 'none' ? weight * gamma > 0 : isRaw;
    return {
      shift: gamma === 0 && !isRaw ? ['agentStepReward'] : [],
      ...(hasNoScale ? {} : { takesScaleOut: spread === 'group' }),
    };
  },
  unused: ({ gamma, spread }) => [
    ...(gamma === 0 ? ['weight'] : []), // no step before counts
    ...(spread === 'none' ? ['epsilon', 'minimumSpread'] : []),
  ],
  compute(batch, { weight, gamma, spread }, settings) {
    const unnumbered = batch.turns.findIndex(({ envStep }) => envStep === undefined);
    if (unnumbered >= 0)
      throw new ArgumentError(
        `${batch.nameOf(unnumbered)}: advantage-alignment compares the same round of several episodes, and this turn ` +
          'names none: give each call of an agent its round, such as `solver(prompt, { envStep: 0 })`, or choose another ' +
          'estimator',
      );
    const { agentSteps, agents, taskAgentSteps } = batch;
    const returns = statisticsOf(agentSteps, stepReturns(batch, gamma, 'agent')).mean;
    const members = parentsOf(agentSteps, taskAgentSteps);
    const pool = { turns: members.of, members, values: returns, wider: parentsOf(agentSteps, agents) };
    const statistics = statisticsOfPool(pool, settings.singleton);
    const divisor = spread === 'group' ? statistics : undefined;
    const alone = measure(returns, { mean: statistics, spread: divisor }, settings);
    const past = pastAdvantages(batch, alone, gamma);
    const others = advantagesOfOthers(batch, alone);
    const aligned = alone.map((a, i) => a + weight * gamma * (past[i] as number) * (others[i] as number));
    return Float64Array.from(agentSteps.of, (i) => aligned[i] as number);
  },
});

/** The sum of the agent's advantages before each of its steps, discounted by gamma for each step that it acts in. */
function pastAdvantages(batch: TurnBatch, advantages: Float64Array, gamma: number): Float64Array {
  const { agentSteps, agentEpisodes } = batch;
  const { of } = parentsOf(agentSteps, agentEpisodes);
  const steps = new Float64Array(agentSteps.count);
  agentSteps.of.forEach((i, turn) => {
    steps[i] = batch.stepOf(turn);
  });
  const order = Uint32Array.from(of, (_, i) => i).sort(
    (a, b) => (of[a] as number) - (of[b] as number) || (steps[a] as number) - (steps[b] as number),
  );
  const past = new Float64Array(agentSteps.count);
  order.forEach((i, position) => {
    const before = order[position - 1];
    if (before === undefined || of[before] !== of[i]) return;
    past[i] = gamma * ((past[before] as number) + (advantages[before] as number));
  });
  return past;
}

/** For each agent in each step: the sum of the advantages of the others who act in the step. */
function advantagesOfOthers({ agentSteps, episodeSteps }: TurnBatch, advantages: Float64Array): Float64Array {
  const { of, count } = parentsOf(agentSteps, episodeSteps);
  const sums = new Float64Array(count);
  advantages.forEach((advantage, i) => {
    sums[of[i] as number] = (sums[of[i] as number] as number) + advantage;
  });
  return advantages.map((advantage, i) => (sums[of[i] as number] as number) - advantage);
}
