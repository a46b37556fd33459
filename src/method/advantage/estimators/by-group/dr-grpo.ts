import { defineEstimator } from '../../define-estimator.js';
import { groupChoices, scoreChoices } from '../../named-choices.js';

export const drGrpo = defineEstimator({
  type: 'dr-grpo',
  schema: { ...groupChoices, ...scoreChoices },
  source: 'Dr. GRPO, Liu et al. 2025',
  formula: 's - mean episodes',
  use: 'when dividing by the spread favours tasks that are nearly always or nearly never solved',
  traits: { compared: 'on request' },
  rule: () => ({ score: 'episode', mean: 'episodes', spread: 'none' }),
});
