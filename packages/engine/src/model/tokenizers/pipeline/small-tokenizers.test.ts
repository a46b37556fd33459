/** Small tokenizers: the ids and texts of PyPI's tokenizers, as `test/goldens/small_tokenizers.py` wrote them. */
import { describe, expect, it } from 'vitest';
import { golden, goldenNames } from '../../../../../../test/goldens.js';
import { pipelineOf } from './pipeline.js';

interface Row {
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly encodings: readonly (readonly [text: string, ids: readonly number[]])[];
  readonly decodings: readonly (readonly [ids: readonly number[], text: string])[];
}

describe('a small tokenizer encodes and decodes as the original', () => {
  it.each(goldenNames('small-tokenizers'))('%s', (name) => {
    const { tokenizer, encodings, decodings } = golden<Row>(`small-tokenizers/${name}`);
    const { encode, decode } = pipelineOf(tokenizer, {});
    for (const [text, ids] of encodings) expect([text, encode(text)]).toEqual([text, ids]);
    for (const [ids, text] of decodings) expect([ids, decode(ids)]).toEqual([ids, text]);
  });
});

describe('byte pairs', () => {
  const model = { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] };
  it.each([
    [{ merges: [['a', 'c']] }, 'its merge ["a","c"] has a part that is not in its vocab'],
    [{ merges: ['a'] }, 'its merge "a" is no pair'],
    [{ unk_token: '?' }, 'its unk_token ? is not in its vocab'],
  ])('refuse %j by name', (changes, message) => {
    expect(() => pipelineOf({ model: { ...model, ...changes } }, {})).toThrow(message);
  });
});

describe('what the original cannot use', () => {
  const model = { type: 'Unigram', vocab: [['ab', -1]], unk_id: null };
  it('is a character without a token if the vocabulary has none for unknown ones', () => {
    // The original needs a token for `a` and for `b`, although `ab` is one.
    expect(pipelineOf({ model }, {}).encode('ab')).toEqual([undefined]);
  });

  it.each([
    [{ normalizer: { type: 'Prepend', prepend: '' } }, 'Prepend.prepend must not be empty'],
    [{ decoder: { type: 'BPEDecoder', suffix: '' } }, 'BPEDecoder.suffix must not be empty'],
    [
      {
        normalizer: { type: 'Strip', strip_left: true, strip_right: true },
        added_tokens: [{ id: 1, content: '\n', normalized: true }],
      },
      'nothing of its added token "\\n" is left when it is normalized',
    ],
  ])('or makes no sense, is refused by name: %j', (parts, message) => {
    expect(() => pipelineOf({ model, ...parts }, {})).toThrow(message);
  });
});
