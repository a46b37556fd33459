import type { ForwardBackwardResult } from '../../contract/handles.js';
import type { OptimStepResult } from '../../contract/optimizer-settings.js';
import { mean } from '../../core/statistics.js';

/** Gradients of the agents of a policy, and the step that was taken with their sum. */
interface SharedUpdate {
  readonly gradients: readonly { readonly result: Pick<ForwardBackwardResult, 'gradientNorm'> }[];
  readonly optimStep: Pick<OptimStepResult, 'norm'>;
}

/**
 * How far the agents of one policy want the same: the mean cosine between the gradients of two of them, weighted by the
 * product of their norms. It follows from norms alone, for |g1 + g2 + ...|^2 is the sum of all |gi|^2 and of all gi.gj.
 * Below 0 the gradients conflict (Yu et al. 2020, "Gradient Surgery for Multi-Task Learning", arXiv 2001.06782,
 * definition 1).
 * @returns From -1 to 1, averaged over the updates; undefined of an agent alone, and where a norm is not known
 */
export function agreementOf(updates: readonly SharedUpdate[]): number | undefined {
  const cosines = updates.flatMap(({ gradients, optimStep: { norm } }) => {
    const norms = gradients.flatMap(({ result: { gradientNorm } }) => gradientNorm ?? []);
    if (norm === undefined || norms.length < gradients.length) return [];
    const sum = norms.reduce((total, each) => total + each, 0);
    const squares = norms.reduce((total, each) => total + each ** 2, 0);
    const products = sum ** 2 - squares; // of all pairs, each twice
    const cosine = (norm ** 2 - squares) / products;
    return norms.length > 1 && products > 0 && Number.isFinite(cosine) ? [Math.max(-1, Math.min(1, cosine))] : [];
  });
  return cosines.length === 0 ? undefined : mean(cosines);
}
