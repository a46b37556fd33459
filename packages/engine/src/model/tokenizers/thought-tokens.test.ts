import { describe, expect, it } from 'vitest';
import { thoughtTokens } from './thought-tokens.js';

/** A tokenizer with a token for each of these pieces. */
const tokenizerOf = (pieces: readonly string[]) => ({
  decode: (ids: readonly number[]) => ids.map((id) => pieces[id]).join(''),
  stopTokens: [],
});

const counted = (...pieces: string[]) => thoughtTokens(tokenizerOf(pieces), [...pieces.keys()]);

describe('thoughtTokens', () => {
  it.each([
    [3, ['<think>', 'a', '</think>', 'b']],
    [2, ['a', '</think>', 'b']], // the prompt has begun the thinking
    [2, ['a', '[/THINK]', 'b']],
    [5, ['<thi', 'nk>a</', 'th', 'in', 'k>b', 'c']],
    [4, [' \n', '<think>', '[/THINK]', '</think>']], // the mark of another kind
    [4, ['[THI', 'NK]', '</think>', 'a[/THINK]', 'b']],
    [3, ['<think>', 'a', 'b']], // no end
    [0, []],
  ])('counts %i', (expected, pieces) => expect(counted(...pieces)).toBe(expected));

  it.each([' ', 'a', '\ufffd'])('counts a long text of %j within a test', (piece) => {
    const tokens = 150_000; // work that grows with the square of the length would take minutes
    const tokenizer = { decode: (ids: readonly number[]) => piece.repeat(ids.length), stopTokens: [] };
    expect(thoughtTokens(tokenizer, new Array(tokens).fill(0))).toBe(tokens);
  });
});
