import { defineEstimator } from '../../define-estimator.js';
import { spreadChoices } from '../../named-choices.js';

export const grpoTurn = defineEstimator({
  type: 'grpo-turn',
  schema: { ...spreadChoices },
  source: 'the ablation the Dr. MAS paper lacks',
  formula: '(r - mean turns) / (std turns + eps)',
  use: 'comparisons: shared statistics, counted by turn',
  traits: { compared: 'usually' },
  rule: () => ({ score: 'turn', mean: 'turns', spread: 'turns' }),
});
