import { defineEstimator } from '../../define-estimator.js';
import { sharingChoices, spreadChoices } from '../../named-choices.js';

/** Every agent measured against all of its turns of the step, as Algorithm 1 of the paper is printed. */
export const drmasBatch = defineEstimator({
  type: 'drmas-batch',
  schema: { ...spreadChoices, ...sharingChoices },
  source: 'Dr. MAS, Algorithm 1 as printed',
  formula: "(r - mean batch-agent) / (std batch-agent + eps): over the agent's turns of all tasks of the step",
  use: 'agents that are called too rarely for groups within a task; the mean does not depend on how hard a task is',
  traits: { compared: 'on request', rival: 'drmas' },
  rule: () => ({ score: 'turn', mean: 'batch-agent', spread: 'batch-agent' }),
});
