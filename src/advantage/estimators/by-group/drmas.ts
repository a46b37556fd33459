import { z } from 'zod';
import { defineEstimator } from '../../define-estimator.js';
import { sharingChoices, spreadChoices } from '../../named-choices.js';

/** Every agent measured against itself. */
export const drmas = defineEstimator({
  type: 'drmas',
  schema: {
    spread: z
      .enum(['agent', 'none'])
      .default('agent')
      .describe("The standard deviation that divides: the agent's, or none."),
    ...spreadChoices,
    ...sharingChoices,
  },
  source: 'Dr. MAS, arXiv 2602.08847',
  formula: "(r - mean agent) / (std agent + eps); `spread: 'none'`: r - mean agent",
  use: 'the default: agents that are called when things go badly (or well), or have rewards or penalties of their own',
  traits: { compared: 'usually', rival: 'grpo' },
  rule: ({ spread }) => ({ score: 'turn', mean: 'agent', spread }),
});
