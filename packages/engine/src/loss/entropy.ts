import { ArgumentError, requireKnown } from '../errors.js';
import { aggregateLoss, aggregationWeights, assertMask, assertSameShape, type TokenNumbers } from './aggregate.js';
import type { Aggregation } from './loss-settings.js';

/** The entropy of given logits, and its gradient. */
export interface EntropyResult {
  /** The aggregated entropy, nats. Subtract `coefficient · loss` from a policy loss to reward it. */
  readonly loss: number;
  readonly perToken: number[][]; // [rows][T]
  /** d loss / d logits, 0 where masked. */
  readonly gradient: number[][][]; // [rows][T][V]
}

/**
 * Entropy of softmax(logits / temperature) a token: H = -Σ p log p; dH / d logit_v = -p_v (log p_v + H) / temperature.
 * @param logits [rows][T][V]
 * @param mask [rows][T]
 * @throws ArgumentError when shapes differ, the mask has other entries than 0 and 1, or the temperature is not positive
 *
 * @example
 * ```ts
 * import { entropyBonus } from 'drmas';
 *
 * const rows = { logits: [[[0, 0]]], mask: [[1]] };
 * entropyBonus(rows, { aggregate: 'token-mean' }); // the entropy of a fair coin is log 2
 * ```
 */
export function entropyBonus(
  { logits, mask }: { readonly logits: readonly (readonly TokenNumbers[])[]; readonly mask: readonly TokenNumbers[] },
  options: { readonly aggregate: Aggregation; readonly temperature?: number },
): EntropyResult {
  requireKnown<typeof options>(options, { aggregate: true, temperature: true });
  const { aggregate, temperature = 1 } = options;
  assertSameShape({ logits, mask });
  assertMask(mask);
  if (!(temperature > 0)) throw new ArgumentError(`temperature must be greater than 0, got ${temperature}`);
  const weights = aggregationWeights(mask, aggregate);
  const perToken: number[][] = [];
  const gradient = logits.map((row, r) => {
    const entropies: number[] = [];
    perToken.push(entropies);
    return row.map((tokenLogits, t) => {
      const logProbabilities = logSoftmax(tokenLogits, temperature);
      const entropy = -logProbabilities.reduce((sum, logP) => sum + weighted(logP, logP), 0);
      entropies.push(entropy);
      const weight = (weights[r]?.[t] ?? 0) / temperature;
      return logProbabilities.map((logP) => (weight === 0 ? 0 : -weight * weighted(logP, logP + entropy)));
    });
  });
  return { loss: aggregateLoss(perToken, mask, aggregate), perToken, gradient };
}

/** p · value, 0 where p is 0 (a logit of -Infinity). */
const weighted = (logP: number, value: number): number =>
  logP === Number.NEGATIVE_INFINITY ? 0 : Math.exp(logP) * value;

function logSoftmax(logits: TokenNumbers, temperature: number): number[] {
  const scaled = Array.from(logits, (logit) => logit / temperature);
  const largest = scaled.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const logSum = largest + Math.log(scaled.reduce((sum, z) => sum + Math.exp(z - largest), 0));
  return scaled.map((z) => z - logSum);
}
