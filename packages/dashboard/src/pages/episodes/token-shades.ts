import type { ShownToken } from '../../../../../src/runs/analysis.js';

export const shades = ['log-prob', 'ratio', 'advantage'] as const;
export type Shade = (typeof shades)[number];

/** -log p at which a token is as dark as it gets: one in 150. */
const DARKEST = 5;
/** |log ratio| at which a token is as dark as it gets: half, or one and a half times as likely. */
const FURTHEST = 0.5;
/** The darkest shade of all: letters stay readable on it. */
const MOST = 0.75;

/** The class and the strength, 0 to 0.75, of a token's shade; `largest` is the largest |advantage| of its turn. */
export function shadeOf(
  { logprob, ratio, advantage }: ShownToken,
  shade: Shade,
  largest: number,
): { readonly kind: 'likely' | 'above' | 'below'; readonly strength: number } {
  const signed = (value: number) =>
    ({ kind: value >= 0 ? 'above' : 'below', strength: strengthOf(Math.abs(value)) }) as const;
  if (shade === 'ratio') return signed(Math.log(ratio ?? 1) / FURTHEST);
  if (shade === 'advantage') return signed((advantage ?? 0) / largest);
  return { kind: 'likely', strength: strengthOf(-(logprob ?? 0) / DARKEST) };
}

const strengthOf = (value: number) => MOST * Math.min(1, Math.max(0, value));
