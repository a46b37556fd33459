import { defineEstimator } from '../../define-estimator.js';
import { sharingChoices, spreadChoices } from '../../named-choices.js';

/**
 * Measures every agent against its own episodes, each once: identity without frequency. A comparison with `grpo`
 * (neither), `grpo-turn` (frequency alone) and `drmas` (both) shows which of the two makes a difference.
 */
export const drmasEpisode = defineEstimator({
  type: 'drmas-episode',
  schema: { ...spreadChoices, ...sharingChoices },
  source: 'the ablation the Dr. MAS paper lacks',
  formula:
    "(a - mean agent-episodes) / (std agent-episodes + eps), a the mean of the agent's r in the episode: an episode " +
    'counts once, however often the agent is called in it',
  use: 'agents that are called a different number of times; with `grpo`, `grpo-turn` and `drmas` it separates identity from frequency',
  traits: { compared: 'on request', rival: 'grpo' },
  rule: () => ({ score: 'agent-episode', mean: 'agent-episodes', spread: 'agent-episodes' }),
});
