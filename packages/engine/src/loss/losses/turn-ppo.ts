import { defineLoss } from '../define-loss.js';
import { aggregate, clipSettings } from '../loss-settings.js';
import { clippedToken, dampened } from './clipped-surrogate.js';

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

/**
 * ST-PPO (Li et al. 2025, arXiv 2511.20718): the ratios of Turn-PPO, divided as S-PPO divides.
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

/**
 * S-PPO (Li et al. 2025, arXiv 2511.20718, eqs. 7, 8): PPO's clipped surrogate with its gradient normalised by the
 * clipping bias.
 *
 * The clipping bias is the part of the policy gradient that clipping leaves out, C = E[Σ_t 1{t clipped} r_t A_t ∇log
 * p_t / |y|]. The paper divides the gradient by ‖C‖₂. Ours differs in two points, because C is 0 on the first pass over
 * on-policy samples and ‖C‖₂ in the space of weights would cost a second backward pass: the divisor is 1 + c, with c =
 * the mean of 1{t clipped} r_t |A_t| over the samples of one call (an agent's share of a mini-batch), averaged as the
 * loss is, which bounds ‖C‖₂ where no token's ‖∇log p_t‖ exceeds 1. It is a constant of the gradient.
 */
export const sPpo = defineLoss({
  type: 's-ppo',
  schema: { ...clipSettings, ...aggregate('seq-mean-token-mean') },
  source: 'S-PPO, Li et al. 2025 (arXiv 2511.20718), eqs. 7 and 8; our changes: see below',
  formula: '`ppo-clip` / sg(1 + c), c = mean over all tokens of r abs(A), 0 if not clipped',
  use: 'updates that drift: the more is clipped, the smaller the step',
  ratio: 'token',
  gradientOf: 'ratio',
  ...dampened,
  token: clippedToken,
});
