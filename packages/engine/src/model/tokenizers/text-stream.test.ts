import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Tokenizer } from '../../base/core/tokenizer.js';
import { bytesTokenizer } from './bytes.js';
import { createTokenizer } from './create-tokenizer.js';
import { TextStream } from './text-stream.js';

const symbols = createTokenizer({
  type: 'symbols',
  symbols: ['a', ' ', 'é', '<end>', '<ask>'],
  stop: '<end>',
  endOfUser: '<ask>',
  endOfAssistant: '<end>',
});
/** Words with their space in front, which the first word of a text loses, as decoders of Llama's family do. */
const words: Tokenizer = {
  ...bytesTokenizer(),
  vocabSize: 4,
  stopTokens: [3],
  decode: (tokens) =>
    tokens
      .map((token) => [' one', ' two', '!'][token] ?? '')
      .join('')
      .replace(/^ /, ''),
};

describe.each([
  ['bytes', bytesTokenizer()],
  ['symbols', symbols],
  ['words with spaces in front', words],
])('text of %s', (_, tokenizer) => {
  it('comes in pieces that are the whole together, however the tokens come', () => {
    const token = fc.nat(tokenizer.vocabSize - 1).filter((id) => !tokenizer.stopTokens.includes(id));
    fc.assert(
      fc.property(fc.array(fc.array(token, { maxLength: 3 }), { maxLength: 40 }), (batches) => {
        const stream = new TextStream(tokenizer);
        const pieces = batches.map((tokens) => stream.push(tokens));
        pieces.push(stream.end(), stream.end());
        expect(pieces.join('')).toBe(tokenizer.decode(batches.flat()));
        expect(stream.text).toBe(tokenizer.decode(batches.flat()));
      }),
    );
  });
});

describe('text of bytes', () => {
  const tokenizer = bytesTokenizer();

  it('comes as soon as a character is whole, and no piece of a character does', () => {
    const stream = new TextStream(tokenizer);
    const pieces = tokenizer.encode('aé🙂b').map((token) => stream.push([token]));
    expect(pieces).toEqual(['a', '', 'é', '', '', '', '🙂', 'b']);
  });

  it('ends without the token that ends it', () => {
    const stream = new TextStream(tokenizer);
    expect(stream.push([...tokenizer.encode('hi'), ...tokenizer.stopTokens])).toBe('hi');
    expect(stream.end()).toBe('');
  });
});
