import { defineEstimator } from '../../define-estimator.js';
import { sharingChoices, spreadChoices } from '../../named-choices.js';

/** Groups of (task, agent, turn of the team's workflow). */
export const atGrpo = defineEstimator({
  type: 'at-grpo',
  schema: { ...spreadChoices, ...sharingChoices },
  source: 'Zhao et al. 2025, arXiv 2510.11062',
  formula: 'as `drmas`, within (task, agent, step)',
  use: 'compares turns of one index; groups get small ([what differs](#at-grpo-and-magrpo))',
  traits: { compared: 'on request' },
  rule: () => ({ score: 'turn', mean: 'agent-step', spread: 'agent-step' }),
});
