import { z } from 'zod';
import { defineEstimator } from '../../define-estimator.js';
import { scoreChoices, sharingChoices, spreadChoices } from '../../named-choices.js';

export const partition = defineEstimator({
  type: 'partition',
  schema: {
    score: z
      .enum(['episode', 'agent-episode', 'chain', 'turn'])
      .describe(
        "The number that is normalised: the score of the `episode`, the agent's mean reward in it (`agent-episode`), " +
          'the mean reward of a `chain` of turns, or the reward of the single `turn`.',
      ),
    mean: z
      .enum(['agent', 'agent-episodes', 'agent-chains', 'batch-agent', 'task'])
      .describe(
        'The turns that share the mean: the turns of one `agent` in the task; its episodes there, each with its mean ' +
          'reward (`agent-episodes`); its chains of turns, each with its mean reward (`agent-chains`); its turns of ' +
          'the whole step (`batch-agent`); or all turns of the `task`.',
      ),
    spread: z
      .enum(['agent', 'agent-episodes', 'agent-chains', 'batch-agent', 'task', 'none'])
      .describe('The turns that share the standard deviation that divides. `none`: no division.'),
    unit: z
      .enum(['episode', 'chain', 'turn'])
      .default('episode')
      .describe(
        'The values in the statistics of the whole task: one score for each `episode` or `chain`, or every `turn`.',
      ),
    ...spreadChoices,
    ...scoreChoices,
    ...sharingChoices,
  },
  source: 'the general form',
  formula: '(s or r - mean) / (std + eps), by the choices',
  use: 'trying other choices',
  rule: ({ score, mean, spread, unit }) => {
    const shared = `${unit}s` as const;
    return { score, mean: mean === 'task' ? shared : mean, spread: spread === 'task' ? shared : spread, shared };
  },
});
