import { describe, expect, it } from 'vitest';
import { sampleOf } from '../../../../test/support/samples.js';
import { packSamples, unpackSamples } from './sample-batch.js';

describe('packSamples', () => {
  it('packs what unpackSamples takes apart, optional log-probs where samples have them', () => {
    const facts = { agent: 'verifier', temperature: 0.5, episodeTokens: 4 };
    const spans = [
      { start: 1, end: 2 },
      { start: 2, end: 3 },
    ];
    const plain = [sampleOf([1, 2], [1, 1], { spans }), sampleOf([3], [-1], facts)];
    expect(unpackSamples(packSamples(plain))).toEqual(plain);
    const held = plain.map((sample, i) => ({ ...sample, referenceLogprobs: sample.tokens.map((t) => -t - i) }));
    const rows = held.map((sample) => ({ ...sample, referenceLogprobs: Float32Array.from(sample.referenceLogprobs) }));
    expect(unpackSamples(packSamples(rows))).toEqual(rows);
    expect(unpackSamples(packSamples([]))).toEqual([]);
  });

  it('refuses an optional field that only some samples have', () => {
    const some = [sampleOf([1], [1]), sampleOf([1], [1], { referenceLogprobs: Float32Array.of(0, -1) })];
    expect(() => packSamples(some)).toThrow('1 of 2 samples have referenceLogprobs: expected all or none');
  });
});
