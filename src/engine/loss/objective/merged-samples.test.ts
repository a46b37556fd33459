import { describe, expect, it } from 'vitest';
import { sampleOf } from '../../../../test/support/samples.js';
import type { LossSpec } from '../loss-spec.js';
import { mergeSamples, normalizerOf } from './merged-samples.js';

describe('mergeSamples', () => {
  it('keeps one row of identical samples, in order of first appearance, and drops rows without advantage', () => {
    const rows = mergeSamples([
      sampleOf([1, 2], [0, 0]),
      sampleOf([2], [1]),
      sampleOf([1, 2], [1, -2]),
      sampleOf([3], [0]),
      sampleOf([1, 2], [0.5, 1]),
    ]);
    expect(rows.map((row) => row.indices)).toEqual([[0, 2, 4], [1]]);
    expect(rows[0]?.rows[0]?.parts).toEqual([
      { advantages: Float64Array.of(0, 1.5, 1), counts: Uint32Array.of(0, 2, 1) },
      { advantages: Float64Array.of(0, 0, -2), counts: Uint32Array.of(0, 0, 1) },
    ]);
  });

  it('keeps rows without advantage where other terms of the loss need them', () => {
    const rows = mergeSamples([sampleOf([2], [0]), sampleOf([1], [1])], 'scored');
    expect(rows.map(({ indices, rows: [row] }) => [indices, row?.parts.length])).toEqual([
      [[0], 0],
      [[1], 1],
    ]);
  });

  it.each([
    ['agent', { agent: 'verifier' }],
    ['temperature', { temperature: 0.5 }],
    ['the length of the episode', { episodeTokens: 5 }],
    ['mask', { mask: Uint8Array.of(0, 1, 0) }],
    ['behaviour log-prob', { behaviourLogprobs: Float32Array.of(0, -9, -9) }],
    ['reference log-prob', { referenceLogprobs: Float32Array.of(0, -9, -9) }],
    ['tokens', { tokens: Int32Array.of(8, 1, 2) }],
  ])('keeps samples apart that differ in %s', (_, difference) => {
    expect(mergeSamples([sampleOf([1, 2], [1, 1]), sampleOf([1, 2], [1, 1], difference)])).toHaveLength(2);
  });

  it('takes the normalizer from every sample, dropped ones too', () => {
    const samples = [sampleOf([1, 2], [0, 0]), sampleOf([1, 2, 3], [1, 1, 1])];
    const of = (aggregate: Extract<LossSpec, { type: 'ppo-clip' }>['aggregate']) =>
      normalizerOf(samples, { type: 'ppo-clip', clip: 0.2, aggregate }, 10);
    expect(of('token-mean')).toBe(5);
    expect(of('seq-mean-token-sum')).toBe(2);
    expect(of('seq-mean-token-sum-norm')).toBe(2 * 10);
  });

  it('refuses arrays of different lengths and advantages that are not numbers', () => {
    expect(() => mergeSamples([sampleOf([1, 2], [1])])).toThrow('advantages[0] has 2 entries, tokens[0] has 3');
    expect(() => mergeSamples([sampleOf([1], [Number.NaN])])).toThrow('an advantage of agent solver is not a number');
  });
});
