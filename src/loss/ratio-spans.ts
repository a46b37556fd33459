/** Spans of a row whose tokens share one importance ratio. */
import { countTokens, type Row } from './aggregate.js';
import type { LossFacts } from './define-loss.js';

/** The tokens start <= t < end of a row, of which the policy wrote `tokens`, at least one. */
export interface RatioSpan {
  readonly start: number;
  readonly end: number;
  readonly tokens: number;
}

/**
 * The spans of a row: the runs of its mask where a turn shares a ratio, otherwise the whole row. Empty without written
 * tokens.
 */
export function ratioSpans(ratio: LossFacts['ratio'], mask: Row): RatioSpan[] {
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

/** The log of the ratio that the written tokens of a span share, from the log ratios of the tokens. */
export function sharedLogRatio(
  ratio: LossFacts['ratio'],
  { start, end, tokens }: RatioSpan,
  mask: Row,
  logRatio: (t: number) => number,
): number {
  let sum = 0;
  for (let t = start; t < end; t++) if (mask[t] !== 0) sum += logRatio(t);
  return sum / tokensPerUnit(ratio, tokens);
}

/** How many tokens' log ratios make up one unit of the shared one: that of a product is their sum. */
export const tokensPerUnit = (ratio: LossFacts['ratio'], tokens: number) => (ratio === 'product' ? 1 : tokens);
