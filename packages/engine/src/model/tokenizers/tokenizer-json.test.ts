import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenizerError } from '../../base/core/errors.js';
import { assistant, system, user } from '../../base/core/message.js';
import { createTokenizer } from './create-tokenizer.js';
import { BYTE_CHARACTERS } from './pipeline/part.js';
import { huggingFaceForm } from './tokenizer-json.js';
import type { SymbolsSpec } from './tokenizer-spec.js';

const symbols = [
  ...['<pad>', '<end>', '<solver>', '<ask>', '\\boxed{', '}', 'a', 'ab', 'abc', 'b', ' ', '\n', '"', '.*', '(', '[^'],
  ...'=+-*?|$/0123456789é😀',
];
const spec: SymbolsSpec = { type: 'symbols', symbols, stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' };
const anySymbols = fc.array(fc.constantFrom(...symbols)).map((parts) => parts.join(''));
const anyText = fc
  .array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('<|end|', '\ufeff', '\r\n')))
  .map((parts) => parts.join(''));

/** The tokenizer and what Hugging Face's library makes of its files, as they come back from a disk. */
const both = (description: SymbolsSpec | { type: 'bytes' }) => ({
  ours: createTokenizer(description),
  theirs: createTokenizer(JSON.parse(JSON.stringify(huggingFaceForm(description)))),
});

describe("the symbols tokenizer in the form of Hugging Face's files", () => {
  const { ours, theirs } = both(spec);

  it('cuts every text into the same symbols and joins them', () => {
    expect(theirs.vocabSize).toBe(ours.vocabSize);
    expect(theirs.stopTokens).toEqual(ours.stopTokens);
    fc.assert(
      fc.property(anySymbols, (text) => {
        expect(theirs.encode(text)).toEqual(ours.encode(text));
        expect(theirs.decode(ours.encode(text))).toBe(text);
      }),
    );
  });

  it('represents no text that the tokenizer cannot represent', () => {
    for (const text of ['x', 'aXb', '\\boxed{x}', '<sol']) expect(() => theirs.encode(text)).toThrow(TokenizerError);
  });

  it('writes conversations alike', () => {
    const conversation = [system('<solver>'), user('1+1'), assistant('\\boxed{2}'), user('3')];
    for (const length of [1, 2, 3, 4])
      expect(theirs.chat(conversation.slice(0, length))).toEqual(ours.chat(conversation.slice(0, length)));
    const calls = { ...assistant('1'), toolCalls: [] };
    const result = { role: 'tool', content: '2', toolCallId: 'a' } as const;
    expect(theirs.chat([user('1'), calls, result])).toEqual(ours.chat([user('1'), calls, result]));
  });

  it.each([
    [['<end>', 'a<'], 'symbol "a<" overlaps "<end>", which ends a response'],
    [['<end>', '<end>>'], 'symbol "<end>>" overlaps'],
    [['<end>', '\ud83d'], 'half a surrogate pair'],
  ])('refuses %j', (some, message) => {
    const description = { ...spec, symbols: some, endOfUser: '<end>' };
    expect(() => huggingFaceForm(description)).toThrow(TokenizerError);
    expect(() => huggingFaceForm(description)).toThrow(message);
  });

  it('takes symbols that begin as the last one does, or stand in it', () => {
    const { ours, theirs } = both({ ...spec, symbols: ['<end>', '<', 'e', 'en', '<ask>', '>'] });
    for (const text of ['<<end>>', 'e<end>en', '<e<ask>']) expect(theirs.encode(text)).toEqual(ours.encode(text));
  });
});

describe("the bytes tokenizer in the form of Hugging Face's files", () => {
  const { ours, theirs } = both({ type: 'bytes' });

  it('encodes every text as its bytes, and decodes any bytes', () => {
    expect(theirs.vocabSize).toBe(ours.vocabSize);
    expect(theirs.stopTokens).toEqual(ours.stopTokens);
    expect(new Set(BYTE_CHARACTERS).size).toBe(256);
    fc.assert(
      fc.property(anyText, (text) => {
        expect(theirs.encode(text)).toEqual(ours.encode(text));
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.nat(260)), (tokens) => {
        expect(theirs.decode(tokens)).toBe(ours.decode(tokens));
      }),
    );
  });

  it('writes conversations alike', () => {
    fc.assert(
      fc.property(anyText, anyText, (first, second) => {
        const conversation = [system(first), user(second), assistant(first), user('?')];
        expect(theirs.chat(conversation)).toEqual(ours.chat(conversation));
      }),
    );
  });
});
