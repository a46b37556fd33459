import { defineEstimator } from '../../define-estimator.js';
import { scoreChoices, sharingChoices, spreadChoices } from '../../named-choices.js';

export const drmasMean = defineEstimator({
  type: 'drmas-mean',
  schema: { ...spreadChoices, ...scoreChoices, ...sharingChoices },
  source: 'Dr. MAS, ablation; after its table, because the code is not published',
  formula: '(r - mean agent) / (std episodes + eps)',
  use: 'comparisons',
  traits: { compared: 'usually' },
  rule: () => ({ score: 'turn', mean: 'agent', spread: 'episodes' }),
});
