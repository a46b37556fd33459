import { defineLoss } from '../define-loss.js';
import { aggregate, clipSettings } from '../loss-settings.js';
import { clippedToken, dampened } from './clipped-surrogate.js';

/**
 * ST-PPO (Li et al. 2025, arXiv 2511.20718): the ratios of Turn-PPO (turn-ppo.ts), divided as S-PPO divides (s-ppo.ts).
 */
export const stPpo = defineLoss({
  type: 'st-ppo',
  schema: { ...clipSettings, ...aggregate('seq-mean-token-mean') },
  source: 'ST-PPO, Li et al. 2025 (arXiv 2511.20718); our changes: see below',
  formula: '`turn-ppo` / sg(1 + c), with rk',
  use: 'long responses and updates that drift',
  ratio: 'turn',
  gradientOf: 'ratio',
  ...dampened,
  token: clippedToken,
});
