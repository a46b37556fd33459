import { defineEstimator } from '../../define-estimator.js';
import { agentChoice, groupChoices, scoreChoices, sharingChoices } from '../../named-choices.js';

export const rloo = defineEstimator({
  type: 'rloo',
  schema: { ...agentChoice, ...groupChoices, ...scoreChoices, ...sharingChoices },
  source: 'RLOO, Ahmadian et al. 2024',
  formula: '(r - mean episodes) n / (n - 1); `byAgent`: mean agent',
  use: 'the mean of the others as the baseline, no division',
  traits: { compared: 'usually' },
  rule: ({ byAgent }) => ({
    score: 'turn',
    mean: byAgent ? 'agent' : 'episodes',
    spread: 'none',
    leaveOneOut: true,
  }),
});
