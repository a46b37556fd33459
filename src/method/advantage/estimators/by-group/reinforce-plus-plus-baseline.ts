import { whiten } from '@drmas/engine/math';
import { defineEstimator } from '../../define-estimator.js';
import { agentChoice, groupChoices, scoreChoices, sharingChoices } from '../../named-choices.js';

export const reinforcePlusPlusBaseline = defineEstimator({
  type: 'reinforce++-baseline',
  schema: { ...agentChoice, ...groupChoices, ...scoreChoices, ...sharingChoices },
  source: 'Hu et al. 2025',
  formula: "r - mean episodes, then whitened over the step's tokens; `byAgent`: mean agent",
  use: 'one scale for the whole step instead of one a task',
  rule: ({ byAgent }) => ({ score: 'turn', mean: byAgent ? 'agent' : 'episodes', spread: 'none' }),
  after: (batch, advantages) => whiten([advantages], [batch.numbers('length', (turn) => turn.length)])[0] ?? [],
  laws: ({ singleton }) => ({ shift: singleton === 'raw' ? [] : ['reward'], takesScaleOut: true, scaleError: 1e-3 }),
});
