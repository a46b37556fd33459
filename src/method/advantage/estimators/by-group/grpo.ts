import { defineEstimator } from '../../define-estimator.js';
import { scoreChoices, spreadChoices } from '../../named-choices.js';

export const grpo = defineEstimator({
  type: 'grpo',
  schema: { ...spreadChoices, ...scoreChoices },
  source: "DeepSeekMath, Shao et al. 2024; at episode level as in the Dr. MAS paper's code",
  formula: '(s - mean episodes) / (std episodes + eps)',
  use: 'the baseline; the same as `drmas` if every agent acts once and all share one reward without penalties',
  traits: { compared: 'usually' },
  rule: () => ({ score: 'episode', mean: 'episodes', spread: 'episodes' }),
});
