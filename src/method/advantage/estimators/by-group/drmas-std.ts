import { defineEstimator } from '../../define-estimator.js';
import { scoreChoices, sharingChoices, spreadChoices } from '../../named-choices.js';

export const drmasStd = defineEstimator({
  type: 'drmas-std',
  schema: { ...spreadChoices, ...scoreChoices, ...sharingChoices },
  source: 'Dr. MAS, ablation; after its table, because the code is not published',
  formula: '(r - mean episodes) / (std agent + eps)',
  use: 'comparisons only: mean and spread from different scores can give huge advantages; second best in the paper, never ahead here',
  traits: { compared: 'usually' },
  rule: () => ({ score: 'turn', mean: 'episodes', spread: 'agent' }),
});
