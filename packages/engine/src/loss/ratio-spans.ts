/** Spans of a row whose tokens share one importance ratio. */
import { countTokens, type TokenNumbers } from './aggregate.js';
import type { LossFacts } from './define-loss.js';

/** The tokens start <= t < end of a row. The policy wrote `tokens` of them, at least one. */
export interface RatioSpan {
  readonly start: number;
  readonly end: number;
  readonly tokens: number;
}

/**
 * The spans of a row: the runs of its mask if a turn shares a ratio, otherwise the whole row. Empty without written
 * tokens.
 */
export function ratioSpans(ratio: LossFacts['ratio'], mask: TokenNumbers): RatioSpan[] {
  const tokens = countTokens(mask);
  if (tokens === 0) return [];
  if (ratio !== 'turn') return [{ start: 0, end: mask.length, tokens }];
  const spans: RatioSpan[] = [];
  for (let t = 0, start = 0; t < mask.length; t++) {
    if (mask[t] === 0) continue;
    if (t === 0 || mask[t - 1] === 0) start = t;
    if (t + 1 === mask.length || mask[t + 1] === 0) spans.push({ start, end: t + 1, tokens: t + 1 - start });
  }
  return spans;
}

export function sharedLogRatio(
  ratio: LossFacts['ratio'],
  { start, end, tokens }: RatioSpan,
  mask: TokenNumbers,
  logRatio: (t: number) => number,
): number {
  let sum = 0;
  for (let t = start; t < end; t++) if (mask[t] !== 0) sum += logRatio(t);
  return sum / tokensPerUnit(ratio, tokens);
}

/** The number of tokens in one unit of the shared log ratio: 1 for a product of ratios, else the span's tokens. */
export const tokensPerUnit = (ratio: LossFacts['ratio'], tokens: number) => (ratio === 'product' ? 1 : tokens);
