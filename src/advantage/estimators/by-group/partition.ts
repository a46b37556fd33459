import { z } from 'zod';
import { defineEstimator } from '../../define-estimator.js';
import { scoreChoices, spreadChoices } from '../../named-choices.js';

/** The general form: every choice of who is compared with whom, by agent or by task. */
export const partition = defineEstimator({
  type: 'partition',
  schema: {
    /** What is normalised: the episode's score, or the turn's own reward. */
    score: z.enum(['episode', 'turn']),
    /** Who shares the mean. */
    mean: z.enum(['agent', 'task']),
    /** Who shares the standard deviation. */
    spread: z.enum(['agent', 'task', 'none']),
    /** What the task-wide statistics are over. */
    unit: z.enum(['episode', 'turn']).default('episode'),
    ...spreadChoices,
    ...scoreChoices,
  },
  source: 'the general form',
  formula: '(s or r - mean) / (std + eps), by the choices',
  use: 'trying other choices',
  rule: ({ score, mean, spread, unit }) => {
    const shared = unit === 'episode' ? 'episodes' : 'turns';
    return { score, mean: mean === 'task' ? shared : mean, spread: spread === 'task' ? shared : spread, shared };
  },
});
