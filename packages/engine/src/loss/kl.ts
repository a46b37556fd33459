import { ArgumentError } from '../errors.js';
import { assertSameShape, type TokenNumbers } from './aggregate.js';

/** Estimators of KL(policy || reference) from sampled tokens; `klPenalty` has their formulas. */
export type KlKind = 'k1' | 'k2' | 'k3' | 'abs';

/** A term of the loss that holds a policy near its reference: coefficient · KL, aggregated as the policy loss is. */
export interface KlTerm {
  readonly kind: KlKind;
  readonly coefficient: number;
}

/** An estimator of the KL divergence (Schulman, "Approximating KL divergence", 2020). */
interface KlEstimator {
  /** The value from d = log p - log p_reference. */
  readonly value: (d: number) => number;
  /** The derivative of the value by log p. */
  readonly derivative: (d: number) => number;
}

/**
 * k3 is cut at 10 as in the paper's code, so that one improbable token does not rule a batch; its gradient is 0 there.
 */
const K3_BOUND = 10;
const k3 = (d: number): number => Math.exp(-d) + d - 1;

const estimators: Readonly<Record<KlKind, KlEstimator>> = {
  k1: { value: (d) => d, derivative: () => 1 },
  k2: { value: (d) => (d * d) / 2, derivative: (d) => d },
  k3: { value: (d) => Math.min(k3(d), K3_BOUND), derivative: (d) => (k3(d) > K3_BOUND ? 0 : 1 - Math.exp(-d)) },
  abs: { value: Math.abs, derivative: Math.sign },
};

/**
 * The KL penalty of every token: k1 = d, k2 = d²/2, k3 = exp(-d) + d - 1 (at most 10), abs = |d|, d = logprob -
 * reference.
 * @param logprobs [rows][T]
 * @returns [rows][T]
 * @throws ArgumentError when shapes differ or the kind is unknown
 *
 * @example
 * ```ts
 * import { klPenalty } from 'drmas';
 *
 * klPenalty([[-1]], [[-1.5]], 'k1'); // [[0.5]]
 * ```
 */
export function klPenalty(
  logprobs: readonly TokenNumbers[],
  referenceLogprobs: readonly TokenNumbers[],
  kind: KlKind,
): number[][] {
  const { value } = klEstimator(kind);
  assertSameShape({ logprobs, referenceLogprobs });
  return logprobs.map((row, r) => {
    const reference = referenceLogprobs[r] as TokenNumbers;
    return Array.from(row, (logprob, t) => value(logprob - (reference[t] as number)));
  });
}

/**
 * An estimate of KL(policy || old) from a sample of the old policy with this log ratio, log p - log q: r log r - r + 1,
 * whose mean under q is the KL and which is never negative; at most 10, as k3.
 */
export function klOfRatio(logRatio: number): number {
  const ratio = Math.exp(logRatio);
  // r log r is 0 in the limit.
  return ratio === 0 ? 1 : Math.min(ratio * (logRatio - 1) + 1, K3_BOUND);
}

/** The estimator of that kind. @throws ArgumentError for an unknown one */
export function klEstimator(kind: KlKind): KlEstimator {
  if (Object.hasOwn(estimators, kind)) return estimators[kind];
  throw new ArgumentError(`unknown KL kind ${JSON.stringify(kind)}; there are ${Object.keys(estimators).join(', ')}`);
}
