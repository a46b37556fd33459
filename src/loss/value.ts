import type { Aggregation } from '../core/loss.js';
import { aggregateLoss, aggregationWeights, assertSameShape, countTokens, type Row } from './aggregate.js';

export interface ValueLossResult {
  readonly loss: number;
  /** d loss / d values, 0 where masked. */
  readonly gradient: number[][]; // [rows][T]
  readonly metrics: { readonly clipFraction: number };
}

/**
 * The clipped value loss of PPO: max((v - R)², (clamp(v, v_old ± clip) - R)²) a token, R = return; without the ½ that some put
 * before it, as in the paper's code.
 * @throws ArgumentError when shapes differ
 */
export function valueLoss(
  input: {
    readonly values: readonly Row[]; // [rows][T]
    readonly oldValues: readonly Row[]; // [rows][T]
    readonly returns: readonly Row[]; // [rows][T]
    readonly mask: readonly Row[]; // [rows][T]
  },
  { clip, aggregate }: { readonly clip: number; readonly aggregate: Aggregation },
): ValueLossResult {
  const { values, oldValues, returns, mask } = input;
  assertSameShape({ values, oldValues, returns, mask });
  const weights = aggregationWeights(mask, aggregate);
  let clippedTokens = 0;
  let tokens = 0;
  const gradient: number[][] = [];
  const losses = values.map((row, r) => {
    const old = oldValues[r] as Row;
    const target = returns[r] as Row;
    const maskRow = mask[r] as Row;
    tokens += countTokens(maskRow);
    const slopes: number[] = [];
    gradient.push(slopes);
    return Array.from(row, (value, t) => {
      const anchor = old[t] as number;
      const bounded = Math.min(Math.max(value, anchor - clip), anchor + clip);
      const free = value - (target[t] as number);
      const held = bounded - (target[t] as number);
      const clipped = held ** 2 > free ** 2;
      if (clipped && maskRow[t] !== 0) clippedTokens++;
      // `held` wins only where the clamp is active, and there the value moves nothing.
      slopes.push(clipped ? 0 : 2 * (weights[r]?.[t] ?? 0) * free);
      return clipped ? held ** 2 : free ** 2;
    });
  });
  return {
    loss: aggregateLoss(losses, mask, aggregate),
    gradient,
    metrics: { clipFraction: clippedTokens / Math.max(tokens, 1) },
  };
}
