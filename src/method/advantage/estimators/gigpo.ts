import { ArgumentError } from '@drmas/engine/errors';
import { z } from 'zod';
import { defineEstimator } from '../define-estimator.js';
import { type Groups, groupBy, within } from '../groups.js';
import {
  agentChoice,
  discount,
  oneStepChoices,
  scoreChoices,
  sharingChoices,
  spreadChoices,
} from '../named-choices.js';
import { measure, normalise, statisticsOfPool } from '../normalise.js';
import { areSimilar } from '../similarity.js';
import { stepReturns } from '../step-returns.js';
import type { TurnBatch } from '../turn-batch.js';

/**
 * GiGPO (eqs. 3-8): the episode's advantage among the task's episodes, plus `stepWeight` times the advantage of the
 * step's discounted return among the steps that started from the same observation. With `byAgent` both compare only
 * turns of the same agent (GiGPO and Dr. MAS combined). An observation that occurs once adds nothing. A turn without
 * `observation` or `stepReward` is an error.
 */
export const gigpo = defineEstimator({
  type: 'gigpo',
  schema: {
    ...agentChoice,
    spread: z
      .enum(['none', 'group'])
      .default('none')
      .describe('Whether each part is divided by the standard deviation of its group.'),
    stepWeight: z
      .number()
      .min(0)
      .default(1)
      .describe('The weight of the part that compares steps from the same observation.'),
    gamma: discount.default(0.95).describe("The discount of later steps' rewards."),
    similarity: z
      .number()
      .gt(0)
      .lt(1)
      .optional()
      .describe('Observations at least this similar count as the same. By default only equal observations do.'),
    ...spreadChoices,
    ...oneStepChoices,
    ...scoreChoices,
    ...sharingChoices,
  },
  source: 'GiGPO, Feng et al. 2025, arXiv 2505.10978',
  formula:
    "(s - mean episodes) + `stepWeight` x (R - mean of R over the task's turns from the same observation); " +
    "`spread: 'group'` divides each part by its own std + eps; `byAgent`: r - mean agent, observations of the " +
    'same agent (GiGPO and Dr. MAS combined)',
  use: 'situations that come back in several episodes of a task. Needs `observation`, `stepReward`',
  laws: ({ gamma, spread, singleton }) => {
    const isRaw = singleton === 'raw'; // among episodes; an observation that occurs once adds nothing
    return {
      shift: [...(isRaw ? [] : ['reward' as const]), ...(gamma === 0 ? ['stepReward' as const] : [])],
      ...(isRaw && spread === 'group' ? {} : { takesScaleOut: spread === 'group' }),
    };
  },
  penalties: ({ byAgent, stepWeight, episodeScore }) =>
    !byAgent && stepWeight === 0 && episodeScore === 'outcome' ? 'left out' : 'counted',
  unused: ({ byAgent, spread, stepWeight }) => [
    ...(stepWeight === 0 ? ['gamma', 'similarity'] : []),
    ...(spread === 'none' ? ['epsilon', 'minimumSpread'] : []),
    byAgent ? 'episodeScore' : 'shareStatistics',
  ],
  compute(batch, { byAgent, spread, stepWeight, gamma, similarity: threshold }, settings) {
    const unit = byAgent
      ? ({ score: 'turn', mean: 'agent', spread: 'agent' } as const)
      : ({ score: 'episode', mean: 'episodes', spread: 'episodes' } as const);
    const divide = spread === 'group';
    const fromEpisodes = normalise(batch, divide ? unit : { ...unit, spread: 'none' }, settings);

    const returns = stepReturns(batch, gamma);
    const outer = byAgent ? batch.taskAgents : batch.tasks;
    const members = observationGroups(batch, outer, threshold);
    const statistics = statisticsOfPool({ turns: members.of, members, values: returns, wider: outer }, 'zero');
    const fromSteps = measure(returns, { mean: statistics, spread: divide ? statistics : undefined }, settings);
    return fromEpisodes.map((advantage, i) => advantage + stepWeight * (fromSteps[i] as number));
  },
});

function observationGroups(batch: TurnBatch, outer: Groups, threshold: number | undefined): Groups {
  const observations = batch.turns.map(({ observation }, i) => {
    if (observation === undefined) throw new ArgumentError(`${batch.nameOf(i)}: gigpo needs an observation`);
    return observation;
  });
  const grouped = (key: (i: number) => string | number) => within(outer, groupBy(observations.length, key));
  if (threshold === undefined) return grouped((i) => observations[i] as string);
  // Each observation joins the first earlier cluster of its group that is similar enough, or starts a new cluster.
  const representatives = Array.from({ length: outer.count }, (): string[] => []);
  return grouped((i) => {
    const earlier = representatives[outer.of[i] as number] as string[];
    const observation = observations[i] as string;
    const match = earlier.findIndex((other) => areSimilar(observation, other, threshold));
    return match >= 0 ? match : earlier.push(observation) - 1;
  });
}
