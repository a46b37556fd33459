/**
 * Turn-PPO, S-PPO and ST-PPO (Li et al. 2025, "ST-PPO: Stabilized Off-Policy Proximal Policy Optimization for Multi-Turn
 * Agents Training", arXiv 2511.20718): PPO's clipped surrogate with one ratio a turn (eq. 4), with its gradient normalised by
 * the clipping bias (eqs. 7, 8), and with both.
 *
 * The ratio of turn k is the geometric mean of its tokens' ratios, exp(Σ log r_t / |y_k|), and stands in for each of them.
 *
 * The clipping bias is the part of the policy gradient that clipping leaves out, C = E[Σ_t 1{t clipped} r_t A_t ∇log p_t / |y|].
 * The paper divides the gradient by ‖C‖₂. Ours differs in two points, for C is 0 on the first pass over on-policy samples
 * and ‖C‖₂ in the space of weights would cost a second backward pass: the divisor is 1 + c, with c = the mean of
 * 1{t clipped} r_t |A_t| over the samples of one call (an agent's share of a mini-batch), averaged as the loss is, which bounds
 * ‖C‖₂ where no token's ‖∇log p_t‖ exceeds 1. It is a constant of the gradient.
 */

import type { LossKind } from '../define-loss.js';
import type { LossSpec } from '../loss-spec.js';
import { clipped } from './ppo-clip.js';

export const turnPpo = (spec: Extract<LossSpec, { type: 'turn-ppo' }>): LossKind => clipped(spec, 'turn');

export const sPpo = (spec: Extract<LossSpec, { type: 's-ppo' }>): LossKind => ({
  ...clipped(spec, 'token'),
  dampensClipping: true,
});

export const stPpo = (spec: Extract<LossSpec, { type: 'st-ppo' }>): LossKind => ({
  ...clipped(spec, 'turn'),
  dampensClipping: true,
});
