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
