import { z } from 'zod';
import { defineEstimator, type EstimatorState } from '../define-estimator.js';
import { statisticsOf } from '../groups.js';
import { sharingChoices } from '../named-choices.js';
import { DEFAULT_DECAY } from '../running-statistics.js';
import type { TurnBatch } from '../turn-batch.js';

/**
 * A running mean of each agent's rewards as its baseline: the role-conditioned advantage estimation of SPIRAL. A step
 * is measured against the baseline before the step, as in prime-rl. In prime-rl the baseline begins at 0 and moves with
 * every episode. Here it begins with the mean of the agent's first step, and moves once a step, by the mean of the
 * agent's turns.
 */
export const ema = defineEstimator({
  type: 'ema',
  schema: {
    decay: z.number().min(0).lt(1).default(DEFAULT_DECAY).describe('The share of the old running mean in the new one.'),
    ...sharingChoices,
  },
  source: 'SPIRAL, Liu et al. 2025, arXiv 2506.24119; prime-rl',
  formula: "r - b, and after the step b = `decay` x b + (1 - `decay`) x the mean of the agent's r; b is the agent's",
  use: 'self-play, or one episode a task: a baseline without groups and without a critic, carried from step to step',
  laws: () => ({ shift: ['reward'], takesScaleOut: false }),
  compute(batch, _choices, _settings, state) {
    const { of } = batch.agents;
    const baselines = baselinesOf(batch, state);
    return batch.rewards.map((reward, i) => reward - (baselines[of[i] as number] as number));
  },
  advance(batch, { decay }, state) {
    const { mean } = statisticsOf(batch.agents, batch.rewards);
    const baselines = baselinesOf(batch, state);
    const moved = batch.byAgent((k) => decay * (baselines[k] as number) + (1 - decay) * (mean[k] as number));
    return { ...state, ...moved };
  },
});

/** The baseline of each agent of the batch, in the order of its agents. */
function baselinesOf(batch: TurnBatch, state: EstimatorState): number[] {
  const { mean } = statisticsOf(batch.agents, batch.rewards);
  return batch.agentNames.map((name, k) => state[name] ?? (mean[k] as number));
}
