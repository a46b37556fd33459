import { ownValue } from '@drmas/engine/errors';
import { z } from 'zod';
import { defineEstimator } from '../define-estimator.js';
import { statisticsOf } from '../groups.js';
import { agentChoice, oneStepChoices, sharingChoices, spreadChoices } from '../named-choices.js';
import { measure, statisticsOfPool } from '../normalise.js';
import type { TurnBatch } from '../turn-batch.js';

/**
 * GDPO (Liu et al. 2026, arXiv 2601.05242, eqs. 4 to 6). Each named part of the reward is normalised by itself within
 * its group. The weighted sum of the normalised parts is normalised over the whole step. So a part with large numbers
 * does not hide a part with small ones. A turn without one of the step's parts counts 0 there. What the turn's reward
 * has beside its parts (rewards of turns, penalties) is one more part. Without any named part this is GRPO (by
 * agent: Dr. MAS), normalised over the step.
 */
export const gdpo = defineEstimator({
  type: 'gdpo',
  schema: {
    ...agentChoice,
    weights: z
      .record(z.string(), z.number())
      .readonly()
      .default({})
      .describe('The weight of each named part after it was normalised; 1 for a part without a weight.'),
    restWeight: z
      .number()
      .default(1)
      .describe('The weight of the rest of the reward: rewards of turns, minus penalties.'),
    ...spreadChoices,
    ...oneStepChoices,
    ...sharingChoices,
  },
  source: 'GDPO, Liu et al. 2026, arXiv 2601.05242',
  formula:
    'a = sum over the parts p of `weights` (s_p - mean episodes) / (std episodes + eps), s_p as s of the part alone; ' +
    'then (a - mean) / (std + eps) over the episodes of the step; `byAgent`: r_p, agent and batch-agent for s_p, ' +
    'episodes and the step (GDPO and Dr. MAS combined)',
  use: 'rewards with several named parts of different sizes ([what counts as a part](#gdpo))',
  traits: { weighsParts: true },
  laws: ({ singleton }) => (singleton === 'raw' ? { shift: [] } : { shift: ['reward'], takesScaleOut: true }),
  penalties: ({ restWeight }) => (restWeight === 0 ? 'left out' : 'normalised'),
  unused: ({ byAgent }) => (byAgent ? [] : ['shareStatistics']),
  compute(batch, { byAgent, weights, restWeight }, settings) {
    const { episodes, taskAgents, taskOfEpisode, agents, rewards } = batch;
    // The members are turns, or episodes with the mean of their turns.
    const group = byAgent ? taskAgents : taskOfEpisode;
    const whole = byAgent ? agents : { of: new Int32Array(episodes.count), count: 1 };
    const parts = partsOf(batch);
    const rest = rewards.map((reward, i) => parts.reduce((left, { values }) => left - (values[i] as number), reward));
    const total = new Float64Array(group.of.length);
    for (const { weight, values } of [
      ...parts.map(({ name, values }) => ({ weight: ownValue(weights, name) ?? 1, values })),
      { weight: restWeight, values: rest },
    ]) {
      const scores = byAgent ? values : statisticsOf(episodes, values).mean;
      const pool = statisticsOfPool(
        { turns: group.of, members: group, values: scores, wider: whole },
        settings.singleton,
      );
      measure(scores, { mean: pool, spread: pool }, settings).forEach((score, i) => {
        total[i] = (total[i] as number) + weight * score;
      });
    }
    const step = statisticsOfPool({ turns: whole.of, members: whole, values: total, wider: whole }, 'zero');
    const advantages = measure(total, { mean: step, spread: step }, settings);
    return byAgent ? advantages : Float64Array.from(episodes.of, (e) => advantages[e] as number);
  },
});

function partsOf(batch: TurnBatch): { readonly name: string; readonly values: Float64Array }[] {
  const names = new Set(batch.turns.flatMap(({ parts = {} }) => Object.keys(parts)));
  return [...names].sort().map((name) => ({
    name,
    values: batch.numbers(`the part '${name}'`, ({ parts = {} }) => ownValue(parts, name) ?? 0),
  }));
}
