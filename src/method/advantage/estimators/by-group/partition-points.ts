/** Estimators for comparisons: each is a point of `partition` between `grpo` and `drmas`, under a name of its own. */
import { defineEstimator } from '../../define-estimator.js';
import { scoreChoices, sharingChoices, spreadChoices } from '../../named-choices.js';

export const grpoTurn = defineEstimator({
  type: 'grpo-turn',
  schema: { ...spreadChoices },
  source: 'the ablation the Dr. MAS paper lacks',
  formula: '(r - mean turns) / (std turns + eps)',
  use: 'comparisons: shared statistics, counted by turn',
  traits: { compared: 'usually' },
  rule: () => ({ score: 'turn', mean: 'turns', spread: 'turns' }),
});

export const drmasMean = defineEstimator({
  type: 'drmas-mean',
  schema: { ...spreadChoices, ...scoreChoices, ...sharingChoices },
  source: 'Dr. MAS, ablation; after its table, because the code is not published',
  formula: '(r - mean agent) / (std episodes + eps)',
  use: 'comparisons',
  traits: { compared: 'usually' },
  rule: () => ({ score: 'turn', mean: 'agent', spread: 'episodes' }),
});

export const drmasStd = defineEstimator({
  type: 'drmas-std',
  schema: { ...spreadChoices, ...scoreChoices, ...sharingChoices },
  source: 'Dr. MAS, ablation; after its table, because the code is not published',
  formula: '(r - mean episodes) / (std agent + eps)',
  use: 'comparisons only: mean and spread from different scores can give huge advantages; second best in the paper, with no gain over `grpo` in [the findings](research/experiments.md#mean-or-spread-agent-or-frequency)',
  traits: { compared: 'usually' },
  rule: () => ({ score: 'turn', mean: 'episodes', spread: 'agent' }),
});

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
