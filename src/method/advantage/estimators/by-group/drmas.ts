import { z } from 'zod';
import { defineEstimator } from '../../define-estimator.js';
import { sharingChoices, spreadChoices } from '../../named-choices.js';

const members = {
  turn: { score: 'turn', mean: 'agent' },
  chain: { score: 'chain', mean: 'agent-chains' },
  episode: { score: 'agent-episode', mean: 'agent-episodes' },
} as const;

export const drmas = defineEstimator({
  type: 'drmas',
  schema: {
    spread: z
      .enum(['agent', 'none'])
      .default('agent')
      .describe("The standard deviation that divides: the agent's, or none."),
    unit: z
      .enum(['turn', 'chain', 'episode'])
      .default('turn')
      .describe(
        'The unit that counts once in the statistics: a `turn` of the agent; a `chain` of its turns, such as a loop ' +
          "over tools, with the mean of their rewards; or an `episode`, with the mean of the agent's rewards in it.",
      ),
    ...spreadChoices,
    ...sharingChoices,
  },
  source: 'Dr. MAS, arXiv 2602.08847',
  formula:
    "(r - mean agent) / (std agent + eps); `spread: 'none'`: r - mean agent; `unit`: the mean reward of the turn's " +
    'chain or of the agent in the episode for r, agent-chains or agent-episodes for agent',
  use: 'the default: agents that are called when things go badly (or well), or have rewards or penalties of their own',
  traits: { compared: 'usually', rival: 'grpo' },
  rule: ({ spread, unit }) => {
    const { score, mean } = members[unit];
    return { score, mean, spread: spread === 'none' ? 'none' : mean };
  },
});
