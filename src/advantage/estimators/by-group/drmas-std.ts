import { defineEstimator } from '../../define-estimator.js';
import { scoreChoices, sharingChoices, spreadChoices } from '../../named-choices.js';

export const drmasStd = defineEstimator({
  type: 'drmas-std',
  schema: { ...spreadChoices, ...scoreChoices, ...sharingChoices },
  source: 'Dr. MAS, ablation',
  formula: '(r - mean episodes) / (std agent + eps)',
  use: 'comparisons only: mean and spread from different scores can give huge advantages',
  traits: { compared: 'usually' },
  rule: () => ({ score: 'turn', mean: 'episodes', spread: 'agent' }),
});
