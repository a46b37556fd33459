import { z } from 'zod';
import { defineEstimator } from '../../define-estimator.js';
import { scoreChoices, sharingChoices, spreadChoices } from '../../named-choices.js';

/** The general form: every choice of who is compared with whom, by agent or by task. */
export const partition = defineEstimator({
  type: 'partition',
  schema: {
    score: z
      .enum(['episode', 'agent-episode', 'chain', 'turn'])
      .describe(
        "What is normalised: the score of the `episode`, the mean of the agent's rewards in it (`agent-episode`), " +
          'that of the rewards of a `chain` of turns, or the reward of the single `turn`.',
      ),
    mean: z
      .enum(['agent', 'agent-episodes', 'agent-chains', 'batch-agent', 'task'])
      .describe(
        'Who shares the mean: the turns of one `agent` in the task; its episodes there, each with the mean of its ' +
          'rewards (`agent-episodes`), or its chains of turns, likewise (`agent-chains`); its turns of the whole step (`batch-agent`); or all of the `task`.',
      ),
    spread: z
      .enum(['agent', 'agent-episodes', 'agent-chains', 'batch-agent', 'task', 'none'])
      .describe('Who shares the standard deviation that divides; `none` does not divide.'),
    unit: z
      .enum(['episode', 'chain', 'turn'])
      .default('episode')
      .describe(
        'What the statistics of the whole task are over: one score for each `episode` or `chain`, or every `turn`.',
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
