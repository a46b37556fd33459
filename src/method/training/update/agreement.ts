import { mean } from '../../../base/math.js';
import type { ForwardBackwardResult, OptimStepResult } from '../../../engine/contract.js';

/** Gradients of the agents of a policy, and the optimiser step with their sum. */
interface SharedUpdate {
  readonly gradients: readonly { readonly result: Pick<ForwardBackwardResult, 'gradientNorm'> }[];
  readonly optimStep: Pick<OptimStepResult, 'norm'>;
}

/**
 * How much the gradients of one policy's agents agree: the mean cosine between the gradients of two agents, weighted by
 * the product of their norms. The norms are enough to compute it, because |g1 + g2 + ...|^2 is the sum of all |gi|^2
 * and of all gi.gj. Below 0 the gradients conflict (Yu et al. 2020, "Gradient Surgery for Multi-Task Learning", arXiv
 * 2001.06782, definition 1).
 * @returns From -1 to 1, averaged over the updates. Undefined for an agent alone, or if a norm is not known
 */
export function agreementOf(updates: readonly SharedUpdate[]): number | undefined {
  const cosines = updates.flatMap(({ gradients, optimStep: { norm } }) => {
    const norms = gradients.flatMap(({ result: { gradientNorm } }) => gradientNorm ?? []);
    if (norm === undefined || norms.length < gradients.length) return [];
    const sum = norms.reduce((total, each) => total + each, 0);
    const squares = norms.reduce((total, each) => total + each ** 2, 0);
    const products = sum ** 2 - squares; // over all pairs, each counted twice
    const cosine = (norm ** 2 - squares) / products;
    return norms.length > 1 && products > 0 && Number.isFinite(cosine) ? [Math.max(-1, Math.min(1, cosine))] : [];
  });
  return cosines.length === 0 ? undefined : mean(cosines);
}
