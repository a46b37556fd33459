import { ArgumentError, type OptionNames, requireKnown } from '../errors.js';
import {
  assertMask,
  assertSameShape,
  countTokens,
  normalizerOfRows,
  rowWeight,
  type TokenNumbers,
} from './aggregate.js';
import type { Aggregation } from './loss-settings.js';

/** The options of `valueLoss`. */
export interface ValueLossOptions {
  /** How far a value may move from the sampled one before its loss stops counting. */
  readonly clip: number;
  /** How the losses of tokens become one number. */
  readonly aggregate: Aggregation;
  /**
   * Divides the summed loss. Default: the given rows' normalizer. For a part of a mini-batch, pass the mini-batch's.
   */
  readonly normalizer?: number;
}

const OPTIONS: OptionNames<ValueLossOptions> = { clip: true, aggregate: true, normalizer: true };

/** A critic's loss and its gradient with respect to the values. */
export interface ValueLossGradient {
  readonly loss: number;
  /** d loss / d values, 0 where masked. */
  readonly gradient: number[][]; // [rows][T]
  readonly metrics: { readonly clipFraction: number };
}

/**
 * The clipped value loss of PPO: max((v - R)², (clamp(v, v_old ± clip) - R)²) a token, R = return; without the ½ that
 * some put before it, as in the paper's code.
 * @throws ArgumentError when shapes differ, the mask has other entries than 0 and 1, or an option is wrong
 *
 * @example
 * ```ts
 * import { valueLoss } from 'drmas';
 *
 * const rows = { values: [[0.4]], oldValues: [[0.5]], returns: [[1]], mask: [[1]] };
 * const { loss } = valueLoss(rows, { clip: 0.5, aggregate: 'token-mean' });
 * ```
 */
export function valueLoss(
  input: {
    readonly values: readonly TokenNumbers[]; // [rows][T]
    readonly oldValues: readonly TokenNumbers[]; // [rows][T]
    readonly returns: readonly TokenNumbers[]; // [rows][T]
    readonly mask: readonly TokenNumbers[]; // [rows][T]
  },
  options: ValueLossOptions,
): ValueLossGradient {
  requireKnown(options, OPTIONS);
  const { clip, aggregate, normalizer } = options;
  if (!(clip >= 0)) throw new ArgumentError(`clip must be at least 0, got ${clip}`);
  const { values, oldValues, returns, mask } = input;
  assertSameShape({ values, oldValues, returns, mask });
  assertMask(mask);
  const divisor = normalizer ?? normalizerOfRows(aggregate, mask);
  let loss = 0;
  let clippedTokens = 0;
  let tokens = 0;
  const gradient = values.map((row, r) => {
    const [old, target, maskRow] = [oldValues[r] as TokenNumbers, returns[r] as TokenNumbers, mask[r] as TokenNumbers];
    const written = countTokens(maskRow);
    const weight = divisor === 0 ? 0 : rowWeight(aggregate, written) / divisor;
    tokens += written;
    return Array.from(row, (value, t) => {
      if (maskRow[t] === 0) return 0;
      const anchor = old[t] as number;
      const bounded = Math.min(Math.max(value, anchor - clip), anchor + clip);
      const free = value - (target[t] as number);
      const held = bounded - (target[t] as number);
      const clipped = held ** 2 > free ** 2;
      if (clipped) clippedTokens++;
      loss += weight * (clipped ? held ** 2 : free ** 2);
      // `held` wins only where the clamp is active, and there the value moves nothing.
      return clipped ? 0 : 2 * weight * free;
    });
  });
  return { loss, gradient, metrics: { clipFraction: clippedTokens / Math.max(tokens, 1) } };
}
