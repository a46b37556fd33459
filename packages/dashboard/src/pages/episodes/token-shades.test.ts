import { expect, it } from 'vitest';
import { shadeOf } from './token-shades.js';

const token = { text: 'x', logprob: -1, ratio: 1, clipped: false, advantage: -2 };

it('shades a token by the chosen value, up to a limit that keeps letters readable', () => {
  expect(shadeOf(token, 'log-prob', 5)).toEqual({ kind: 'likely', strength: 0.75 * 0.2 });
  expect(shadeOf(token, 'ratio', 4)).toEqual({ kind: 'above', strength: 0 });
  expect(shadeOf(token, 'advantage', 4)).toEqual({ kind: 'below', strength: 0.375 });
  for (const ratio of [0, 1e9]) expect(shadeOf({ ...token, ratio }, 'ratio', 4).strength).toBe(0.75);
  expect(shadeOf({ ...token, ratio: 0.9 }, 'ratio', 4).kind).toBe('below');
  expect(shadeOf({ ...token, ratio: 1.1 }, 'ratio', 4).kind).toBe('above');
});

it('does not shade a token whose value is unknown', () => {
  const unknown = { ...token, logprob: null, ratio: null, advantage: null };
  for (const shade of ['log-prob', 'ratio', 'advantage'] as const) expect(shadeOf(unknown, shade, 1).strength).toBe(0);
});
