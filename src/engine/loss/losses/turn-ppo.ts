import { defineLoss } from '../define-loss.js';
import { aggregate, clipSettings } from '../loss-settings.js';
import { clippedToken } from './clipped-surrogate.js';

/**
 * Turn-PPO (Li et al. 2025, "ST-PPO: Stabilized Off-Policy Proximal Policy Optimization for Multi-Turn Agents
 * Training", arXiv 2511.20718, eq. 4): PPO's clipped surrogate with one ratio a turn. The ratio of turn k is the
 * geometric mean of its tokens' ratios, exp(Σ log r_t / |y_k|). It replaces each token's ratio.
 */
export const turnPpo = defineLoss({
  type: 'turn-ppo',
  schema: { ...clipSettings, ...aggregate('seq-mean-token-mean') },
  source: 'Turn-PPO, Li et al. 2025 (arXiv 2511.20718), eq. 4',
  formula: '`ppo-clip` with rk for r',
  use: 'several updates a step, long responses: a single odd token then changes little',
  ratio: 'turn',
  gradientOf: 'ratio',
  token: clippedToken,
});
