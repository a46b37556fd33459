import { z } from 'zod';
import { defineEstimator } from '../define-estimator.js';
import { groupBy, statisticsOf } from '../groups.js';

/**
 * Hierarchical GRPO, as prime-rl has it for a proposer and its solvers. Turns of the agents in `episodeAgents` are
 * compared with the same agent's turns in the same episode, such as attempts at one proposed problem. Turns of all
 * other agents are compared with the same agent's turns of the task. Without `episodeAgents` this is `drmas` without a
 * spread. A turn that is alone in its group gets advantage 0.
 */
export const hierarchicalGrpo = defineEstimator({
  type: 'hierarchical-grpo',
  schema: {
    episodeAgents: z
      .array(z.string().min(1))
      .readonly()
      .default([])
      .describe("The agents that are compared within an episode, such as `['solver']`. None by default."),
  },
  source: 'prime-rl, `hierarchical_grpo`',
  formula: "r - mean agent; r - mean of the agent's turns in the episode for the agents in `episodeAgents`",
  use: 'a proposer and several solvers of what it proposes: attempts at different problems are not compared',
  laws: () => ({ shift: ['reward'], takesScaleOut: false }),
  compute(batch, { episodeAgents }) {
    const { agentEpisodes, taskAgents, rewards, turns } = batch;
    const inEpisode = new Set(episodeAgents);
    const groups = groupBy(turns.length, (i) =>
      inEpisode.has(turns[i]?.agent ?? '')
        ? (agentEpisodes.of[i] as number)
        : agentEpisodes.count + (taskAgents.of[i] as number),
    );
    const { mean } = statisticsOf(groups, rewards);
    return rewards.map((reward, i) => reward - (mean[groups.of[i] as number] as number));
  },
});
