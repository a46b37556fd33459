import { ArgumentError, assertSameShape } from '../errors.js';
import type { Aggregation } from './loss-settings.js';

export { assertSameShape };

/** One number a token of a sequence: an array or a typed array. */
export type TokenNumbers = ArrayLike<number>;

/** The numbers of response tokens of a row's chain and episode. Without a number, the row alone is the whole. */
export interface Wholes {
  readonly chainTokens?: number | undefined;
  readonly episodeTokens?: number | undefined;
}

/** The facts that determine a row's weight: its response tokens, and the response tokens of its chain and episode. */
export interface WeighedRow extends Wholes {
  readonly mask: TokenNumbers; // [T]
}

/** The weight of a row with this many response tokens. */
export function rowWeight(aggregation: Aggregation, tokens: number, wholes: Wholes = {}): number {
  if (tokens === 0) return 1;
  const { chainTokens = tokens, episodeTokens = tokens } = wholes;
  if (aggregation === 'episode-mean') return 1 / episodeTokens;
  if (aggregation === 'chain-mean') return 1 / chainTokens;
  return aggregation === 'seq-mean-token-mean' ? 1 / tokens : 1;
}

/** @throws ArgumentError for an entry that is neither 0 nor 1: the losses would take `false` for a written token */
export function assertMask(mask: readonly TokenNumbers[]): void {
  for (const [r, row] of mask.entries())
    for (let t = 0; t < row.length; t++)
      if (row[t] !== 0 && row[t] !== 1)
        throw new ArgumentError(`mask[${r}][${t}] is ${String(row[t])}, expected 0 or 1`);
}

/** The number of positions whose token the policy wrote. */
export function countTokens(mask: TokenNumbers): number {
  let tokens = 0;
  for (let t = 0; t < mask.length; t++) if (mask[t] !== 0) tokens++;
  return tokens;
}

/** The number of tokens that the policy wrote in all samples. */
export function countTokensOf(samples: readonly { readonly mask: TokenNumbers }[]): number {
  return samples.reduce((sum, { mask }) => sum + countTokens(mask), 0);
}

/** Whether a written token of the row has an advantage. */
export function hasAdvantage(mask: TokenNumbers, advantages: TokenNumbers): boolean {
  for (let t = 0; t < mask.length; t++) if (mask[t] !== 0 && advantages[t] !== 0) return true;
  return false;
}

/**
 * The normalizer of these rows taken as a complete mini-batch; every aggregation is Σ_rows weight(row) · Σ_tokens loss
 * / normalizer. It is the number of response tokens for `token-mean`, of rows for `seq-mean-token-sum` and
 * `seq-mean-token-mean`, the share of their chains or episodes that the rows are for `chain-mean` and `episode-mean`
 * (the number of chains or episodes if these are complete), and `maxTokens` for `seq-mean-token-sum-norm`.
 * @param maxTokens The most tokens of a response: `seq-mean-token-sum-norm` then divides by it and by the number of
 *   rows, as Dr. GRPO does (Liu et al. 2025). Without it, it divides by the width of the widest row alone, as the Dr.
 *   MAS paper's code.
 * @param wholes What each row is a part of, for `chain-mean` and `episode-mean`
 * @throws ArgumentError for an unknown aggregation, or when `maxTokens` is not above 0
 */
export function normalizerOfRows(
  aggregation: Aggregation,
  mask: readonly TokenNumbers[],
  maxTokens?: number,
  wholes: readonly Wholes[] = [],
): number {
  if (maxTokens !== undefined && !(maxTokens > 0))
    throw new ArgumentError(`maxTokens must be greater than 0, got ${maxTokens}`);
  switch (aggregation) {
    case 'token-mean':
      return mask.reduce((tokens, row) => tokens + countTokens(row), 0);
    case 'seq-mean-token-sum':
    case 'seq-mean-token-mean':
      return mask.length;
    case 'chain-mean':
    case 'episode-mean':
      return mask.reduce((share, row, r) => {
        const tokens = countTokens(row);
        return share + tokens * rowWeight(aggregation, tokens, wholes[r]);
      }, 0);
    case 'seq-mean-token-sum-norm':
      return maxTokens === undefined
        ? mask.reduce((width, row) => Math.max(width, row.length), 0)
        : maxTokens * mask.length;
    default:
      throw new ArgumentError(`unknown aggregation ${JSON.stringify(aggregation satisfies never)}`);
  }
}

/**
 * @param values [rows][T]
 * @param mask [rows][T], 0 where the value is ignored
 * @throws ArgumentError when the shapes differ
 */
export function aggregateLoss(
  values: readonly TokenNumbers[],
  mask: readonly TokenNumbers[],
  aggregation: Aggregation,
): number {
  assertSameShape({ values, mask });
  const normalizer = normalizerOfRows(aggregation, mask);
  let loss = 0;
  mask.forEach((maskRow, r) => {
    const row = values[r] as TokenNumbers;
    let sum = 0;
    for (let t = 0; t < maskRow.length; t++) if (maskRow[t] !== 0) sum += row[t] as number;
    loss += rowWeight(aggregation, countTokens(maskRow)) * sum;
  });
  return normalizer === 0 ? 0 : loss / normalizer;
}

/** d (aggregated loss) / d (token loss) for every token: 0 where masked. The same shape as `mask`. */
export function aggregationWeights(mask: readonly TokenNumbers[], aggregation: Aggregation): number[][] {
  const normalizer = normalizerOfRows(aggregation, mask);
  return mask.map((row) => {
    const weight = rowWeight(aggregation, countTokens(row)) / normalizer;
    return Array.from(row, (m) => (m === 0 ? 0 : weight));
  });
}
