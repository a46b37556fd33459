import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenizerError } from '../../base/core/errors.js';
import { assistant, system, user } from '../../base/core/message.js';
import { createTokenizer } from './create-tokenizer.js';

const symbols = [
  ...['<pad>', '<end>', '<solver>', '<verifier>', '<ask>', '\\boxed{', '}', '<approve>', '<reject>'],
  ...'=+-*0123456789abcdefgh',
];
const spec = { type: 'symbols', symbols, stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' } as const;
const tokenizer = createTokenizer(spec);
const anyText = fc.array(fc.constantFrom(...symbols)).map((parts) => parts.join(''));

describe('the symbols tokenizer', () => {
  it('numbers symbols by position and cuts text into the longest ones', () => {
    expect(tokenizer.vocabSize).toBe(symbols.length);
    expect(tokenizer.stopTokens).toEqual([1]);
    expect(tokenizer.encode('\\boxed{12}')).toEqual(['\\boxed{', '1', '2', '}'].map((s) => symbols.indexOf(s)));
    const greedy = createTokenizer({ ...spec, symbols: ['a', 'ab', 'abc', 'b', '<end>', '<ask>'] });
    expect(greedy.encode('abcabab')).toEqual([2, 1, 1]);
  });

  it('gives back every text it can represent', () => {
    fc.assert(fc.property(anyText, (text) => tokenizer.decode(tokenizer.encode(text)) === text));
  });

  it('takes as many symbols as the large models have', () => {
    const many = Array.from({ length: 150_000 }, (_, id) => `<${id}>`);
    const large = createTokenizer({
      type: 'symbols',
      symbols: many,
      stop: '<1>',
      endOfUser: '<2>',
      endOfAssistant: '<1>',
    });
    expect(large.encode('<149999><14>')).toEqual([149_999, 14]);
  });

  it('names the character and position that it cannot represent', () => {
    expect(() => tokenizer.encode('16a+8x9')).toThrow(
      new TokenizerError('no symbol for "x" at position 5 of "16a+8x9"'),
    );
    expect(() => tokenizer.encode('1😀')).toThrow('no symbol for "😀" at position 1');
    fc.assert(
      fc.property(anyText, fc.constantFrom('x', ' ', 'é', '<sol'), anyText, (before, bad, after) => {
        expect(() => tokenizer.encode(before + bad + after)).toThrow(`at position ${before.length} of`);
      }),
    );
  });

  it('shows ids outside the vocabulary as replacement characters', () => {
    expect(tokenizer.decode([symbols.indexOf('7'), 999])).toBe('7\ufffd');
  });

  it('closes users and assistants and lets the model write at once', () => {
    const question = [system('<solver>'), user('16a+8')];
    expect(tokenizer.decode(tokenizer.chat(question))).toBe('<solver>16a+8<ask>');
    const conversation = [...question, assistant('\\boxed{12}')];
    expect(tokenizer.decode(tokenizer.chat(conversation))).toBe('<solver>16a+8<ask>\\boxed{12}<end>');
  });

  it('puts the exact ids of a message in its place', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(symbols.length - 1)), (ids) => {
        const answer = assistant('never tokenised: x y z');
        const prompt = tokenizer.chat([system('<solver>'), user('1+1')]);
        const next = tokenizer.chat([system('<solver>'), user('1+1'), answer, user('2')], (message) =>
          message === answer ? ids : undefined,
        );
        expect(next).toEqual([...prompt, ...ids, 1, ...tokenizer.encode('2<ask>')]);
      }),
    );
  });

  it('is rebuilt from its description', () => {
    const copy = createTokenizer(JSON.parse(JSON.stringify(tokenizer)));
    expect(copy.encode('12+a')).toEqual(tokenizer.encode('12+a'));
    expect(copy.stopTokens).toEqual(tokenizer.stopTokens);
  });

  it.each([
    [{ ...spec, symbols: ['<end>', '<ask>', 'a', 'a'] }, 'symbol "a" comes twice'],
    [{ ...spec, stop: '<stop>' }, `stop "<stop>" is not one of the ${symbols.length} symbols`],
    [{ ...spec, symbols: [] }, 'tokenizer.symbols: '],
    [{ ...spec, symbols: ['<end>', ''] }, 'tokenizer.symbols.1: '],
    [{ type: 'symbols', symbols: ['a'] }, 'tokenizer.stop: '],
    [{ type: 'words' }, 'tokenizer.type: '],
    [{ type: 'bytes', vocabulary: 3 }, 'vocabulary'],
    [null, 'tokenizer: '],
  ])('refuses the description %j', (description, message) => {
    expect(() => createTokenizer(description)).toThrow(TokenizerError);
    expect(() => createTokenizer(description)).toThrow(message);
  });
});
