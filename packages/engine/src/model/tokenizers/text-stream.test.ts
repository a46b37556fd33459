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

it('goes on behind 64,000 tokens without a text as if there were none', () => {
  const stream = new TextStream({ ...words, stopTokens: [] });
  const beyond = Array.from({ length: 64_000 }, () => stream.push([3])).join('');
  expect([stream.push([0]), beyond, stream.push([3]), stream.push([1, 2])]).toEqual(['one', '', '', ' two!']);
  const again = Array.from({ length: 64_000 }, () => stream.push([3])).join('');
  expect([again, stream.push([0]), stream.end()]).toEqual(['', ' one', '']);
});

describe('text of bytes beside words, as Llama 2 and Gemma write it', () => {
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
  const decoders = [{ type: 'ByteFallback' }, { type: 'Fuse' }];
  const vocab = Object.fromEntries([...bytes, 'one', ' two'].map((token, id) => [token, id]));
  const tokenizer = createTokenizer({
    type: 'huggingface',
    tokenizer: { model: { type: 'BPE', vocab, merges: [] }, decoder: { type: 'Sequence', decoders } },
    config: {},
  });
  const streamed = (tokens: readonly number[]) => {
    const stream = new TextStream(tokenizer);
    return tokens.map((token) => stream.push([token])).join('') + stream.end();
  };

  it('is the whole text if the bytes are characters', () => {
    const word = fc.constantFrom([256], [257], ...['é', '😀', '漢'].map((text) => [...new TextEncoder().encode(text)]));
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), (words) => {
        expect(streamed(words.flat())).toBe(tokenizer.decode(words.flat()));
      }),
    );
  });

  it('loses no word, whatever the bytes', () => {
    const token = fc.oneof(fc.integer({ min: 0x80, max: 257 }), fc.constantFrom(0xf0, 0x9f, 0x98, 0x80));
    const wordsIn = (text: string) => text.match(/ two|one/g);
    fc.assert(
      fc.property(fc.array(token, { maxLength: 30 }), (tokens) => {
        expect(wordsIn(streamed(tokens))).toEqual(wordsIn(tokenizer.decode(tokens)));
      }),
    );
    expect(streamed([0xf0, 0x9f, 0x98, 0x80, 0xf0, 0x9f, 256, 257])).toBe('😀\ufffd\ufffdone two');
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
