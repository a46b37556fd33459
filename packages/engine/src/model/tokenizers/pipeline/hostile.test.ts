import { describe, expect, it } from 'vitest';
import { processorSeconds } from '../../../../../../test/support/time-and-chance.js';
import { TokenizerError } from '../../../base/core/errors.js';
import { createTokenizer } from '../create-tokenizer.js';
import { huggingFaceForm } from '../tokenizer-json.js';

const { tokenizer: plain, config } = huggingFaceForm({ type: 'bytes' });

const read = (changes: object) => createTokenizer({ type: 'huggingface', tokenizer: { ...plain, ...changes }, config });

const split = (Regex: string) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false });
const replace = (pattern: object, content: string) => ({ type: 'Replace', pattern, content });
const times = <T>(count: number, part: T): T[] => Array.from({ length: count }, () => part);
const byteLevel = { type: 'ByteLevel', add_prefix_space: false, use_regex: false };
const bytePairs = (tokens: readonly string[]) => ({
  ...(plain.model as object),
  vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
});
const runs = Array.from({ length: 1000 }, (_, i) => 'a'.repeat(i + 1));

const A = 'a'.repeat(40);
const LONG = 'a'.repeat(20_000);
const TOO_MUCH_WORK = 'tokenizer.json cannot encode the text: its patterns or vocabulary take too much work';
const TOO_LONG = 'tokenizer.json cannot encode the text: it makes';

/** Seconds of processor time. */
const MOST = 10;

describe('a hostile tokenizer.json ends within seconds and is named', () => {
  it.each<[name: string, changes: object, text: string, message: string]>([
    ['repeats a repetition', { pre_tokenizer: split('^(a+)+$') }, `${A}b`, TOO_MUCH_WORK],
    ['repeats the empty', { pre_tokenizer: split('(\\w*\\s*)*!') }, `${A}b`, TOO_MUCH_WORK],
    ['has equal alternatives', { normalizer: replace({ Regex: '^(a|a)*$' }, '') }, `${A}b`, TOO_MUCH_WORK],
    ['looks ahead again and again', { pre_tokenizer: split('(?=(?:a|a)*b)c') }, A, TOO_MUCH_WORK],
    ['looks behind for anything', { pre_tokenizer: split('(?<=(?:a|a){60}c)b') }, `${A}${A}`, TOO_MUCH_WORK],
    ['scans the rest at each character', { pre_tokenizer: split('a*b') }, LONG, TOO_MUCH_WORK],
    ['has runs behind runs', { pre_tokenizer: split('a*a*a*a*b') }, 'a'.repeat(5000), TOO_MUCH_WORK],
    [
      'replaces and grows',
      { normalizer: { type: 'Sequence', normalizers: times(12, replace({ String: 'a' }, 'a'.repeat(10))) } },
      A,
      TOO_LONG,
    ],
    ['replaces nothing by much', { normalizer: replace({ Regex: '' }, 'a'.repeat(1e6)) }, A, TOO_LONG],
    [
      'writes bytes of bytes',
      { pre_tokenizer: { type: 'Sequence', pretokenizers: times(60, byteLevel) } },
      'é',
      TOO_LONG,
    ],
    [
      'has many parts',
      { normalizer: { type: 'Sequence', normalizers: times(20_000, { type: 'NFC' }) } },
      LONG,
      TOO_MUCH_WORK,
    ],
    [
      'compares each part of a word',
      {
        model: {
          type: 'WordPiece',
          unk_token: 'a',
          continuing_subword_prefix: '',
          max_input_chars_per_word: 1e9,
          vocab: { a: 0, b: 1 },
        },
      },
      LONG,
      TOO_MUCH_WORK,
    ],
    [
      'has tokens of all lengths',
      { model: { type: 'Unigram', unk_id: 0, vocab: runs.map((run) => [run, -1]) } },
      LONG,
      TOO_MUCH_WORK,
    ],
    [
      'adds tokens of all lengths',
      { added_tokens: runs.map((run, id) => ({ id, content: `${run}!`, special: true })), model: bytePairs(runs) },
      LONG,
      TOO_MUCH_WORK,
    ],
  ])('that %s', async (_name, changes, text, message) => {
    const seconds = await processorSeconds(() => expect(() => read(changes).encode(text)).toThrow(message));
    expect(seconds).toBeLessThan(MOST);
  });

  it.each<[name: string, changes: object, message: string]>([
    [
      'cuts into pieces of no character',
      { pre_tokenizer: { type: 'FixedLength', length: 0 } },
      'FixedLength.length must be a whole number of at least 1',
    ],
    [
      'adds huge tokens',
      { added_tokens: [{ id: 1, content: 'a'.repeat(2e6), special: true }] },
      'added_tokens have 2000000 characters together',
    ],
    [
      'adds tokens that grow',
      {
        normalizer: { type: 'Sequence', normalizers: times(12, replace({ String: 'a' }, 'a'.repeat(10))) },
        added_tokens: [{ id: 1, content: 'aa', normalized: true }],
      },
      'it makes',
    ],
    ['has an unknown part', { normalizer: { type: 'Nonsense' } }, 'the normalizer Nonsense is not supported'],
    [
      'has a pattern that cannot be read',
      { pre_tokenizer: split('(?x:a)') },
      'a group that is not supported at character 0 of "(?x:a)"',
    ],
  ])('when it is loaded: that %s', (_name, changes, message) => {
    expect(() => read(changes)).toThrow(TokenizerError);
    expect(() => read(changes)).toThrow(`tokenizer.json cannot be used: `);
    expect(() => read(changes)).toThrow(message);
  });

  it('in the text of tokens too', () => {
    const decoder = { type: 'Sequence', decoders: times(12, replace({ String: 'a' }, 'a'.repeat(10))) };
    expect(() => read({ decoder }).decode(times(40, 97))).toThrow('tokenizer.json cannot decode the tokens: it makes');
  });
});

describe('an honest tokenizer.json', () => {
  const GPT4 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  const honest = read({ pre_tokenizer: { type: 'Sequence', pretokenizers: [split(GPT4), byteLevel] } });
  const spaces = read({ pre_tokenizer: null, normalizer: replace({ String: ' ' }, '▁'), model: bytePairs(['a', '▁']) });

  it.each([' ', 'a', '\n', ' a', ' \n', "'s ", '1', '日', '😀', '\r\n '])('reads a long text of %j', (part) => {
    const text = part.repeat(30_000 / part.length);
    expect(honest.encode(text)).toHaveLength(new TextEncoder().encode(text).length);
    if (/^[ a]+$/.test(part)) expect(spaces.encode(text)).toHaveLength(text.length);
  });
});
