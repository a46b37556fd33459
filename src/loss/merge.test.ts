import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LossSpec } from '../core/loss.js';
import type { TrainingSample } from '../core/sample.js';
import { lossOfMerged, mergeSamples, normalizerOf } from './merge.js';
import { policyLoss } from './policy-loss.js';

const specs: LossSpec[] = [
  { type: 'ppo-clip', clip: 0.2, clipHigh: 0.3, dualClip: 1.4, aggregate: 'token-mean' },
  { type: 'ppo-clip', clip: 0.2, aggregate: 'seq-mean-token-sum' },
  { type: 'ppo-clip', clip: 0.2, aggregate: 'seq-mean-token-mean' },
  { type: 'cispo', clipLow: 0.2, clipHigh: 0.2, aggregate: 'seq-mean-token-sum-norm' },
  { type: 'gspo', clipLow: 0.1, clipHigh: 0.1 },
];

function sampleOf(response: readonly number[], advantages: readonly number[], extra = {}): TrainingSample {
  const tokens = Int32Array.from([7, ...response]);
  return {
    tokens,
    mask: Uint8Array.from(tokens, (_, t) => (t === 0 ? 0 : 1)),
    behaviourLogprobs: Float32Array.from(tokens, (token, t) => -0.4 * token - 0.1 * t),
    advantages: Float32Array.from([0, ...advantages]),
    temperature: 1,
    policyVersion: 0,
    agent: 'solver',
    ...extra,
  };
}

// Few distinct responses, so that copies are the rule; advantages of both signs within a row, and rows of zeros.
const sample = fc
  .tuple(
    fc.constantFrom([1], [1, 2], [2, 1], [1, 2, 3]),
    fc.array(fc.constantFrom(-2, -0.5, 0, 0.25, 1), { minLength: 3, maxLength: 3 }),
    fc.boolean(),
  )
  .map(([response, advantages, silent]) =>
    sampleOf(
      response,
      response.map((_, t) => (silent ? 0 : (advantages[t] ?? 0))),
    ),
  );

/** A policy that has moved: a function of the row alone, as a forward pass is. */
const forward = ({ tokens, mask }: TrainingSample) =>
  Float32Array.from(tokens, (token, t) => (mask[t] === 0 ? 0 : -0.4 * token - 0.1 * t + Math.sin(3 * token + t) / 2));

describe('mergeSamples', () => {
  it.each(specs)('gives the loss, gradient and clip fractions of the samples one by one: %o', (spec) => {
    fc.assert(
      fc.property(fc.array(sample, { minLength: 1, maxLength: 12 }), (samples) => {
        const normalizer = normalizerOf(samples, spec);
        const rows = mergeSamples(samples);
        const merged = lossOfMerged(
          rows,
          rows.map((row) => forward(row.sample)),
          spec,
          normalizer,
        );
        const input = {
          logprobs: samples.map(forward),
          behaviourLogprobs: samples.map((s) => s.behaviourLogprobs),
          advantages: samples.map((s) => s.advantages),
          mask: samples.map((s) => s.mask),
        };
        const single = policyLoss(input, spec, { normalizer });
        expect(merged.loss).toBeCloseTo(single.loss, 12);

        const gradientByRow = rows.map(({ sample, indices }) =>
          Array.from(sample.tokens, (_, t) => indices.reduce((sum, i) => sum + (single.gradient[i]?.[t] ?? 0), 0)),
        );
        merged.gradients.forEach((gradient, r) => {
          gradient.forEach((value, t) => {
            const expected = gradientByRow[r]?.[t] ?? Number.NaN;
            expect(Math.abs(value - expected)).toBeLessThanOrEqual(1e-7 * Math.max(1, Math.abs(expected)));
          });
        });

        const kept = new Set(rows.flatMap((row) => row.indices));
        samples.forEach((_, i) => {
          if (!kept.has(i)) expect(single.gradient[i]?.every((g) => g === 0)).toBe(true);
        });
        // Metrics are over what was sent: all copies of the rows that were kept.
        const sent = <T>(all: readonly T[]) => all.filter((_, i) => kept.has(i));
        const { logprobs, behaviourLogprobs, advantages, mask } = input;
        const sentInput = { logprobs: sent(logprobs), behaviourLogprobs: sent(behaviourLogprobs) };
        const metrics = policyLoss({ ...sentInput, advantages: sent(advantages), mask: sent(mask) }, spec).metrics;
        for (const name of ['clipFraction', 'clipFractionLower', 'approxKl', 'maxRatioDeviation'] as const) {
          expect(merged.metrics[name]).toBeCloseTo(metrics[name], 12);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('keeps one row of identical samples, in order of first appearance, and drops rows without advantage', () => {
    const rows = mergeSamples([
      sampleOf([1, 2], [0, 0]),
      sampleOf([2], [1]),
      sampleOf([1, 2], [1, -2]),
      sampleOf([3], [0]),
      sampleOf([1, 2], [0.5, 1]),
    ]);
    expect(rows.map((row) => row.indices)).toEqual([[0, 2, 4], [1]]);
    expect(rows[0]?.parts).toEqual([
      { advantages: Float64Array.of(0, 1.5, 1), counts: Uint32Array.of(0, 2, 1) },
      { advantages: Float64Array.of(0, 0, -2), counts: Uint32Array.of(0, 0, 1) },
    ]);
  });

  it.each([
    ['agent', { agent: 'verifier' }],
    ['temperature', { temperature: 0.5 }],
    ['mask', { mask: Uint8Array.of(0, 1, 0) }],
    ['behaviour log-prob', { behaviourLogprobs: Float32Array.of(0, -9, -9) }],
    ['tokens', { tokens: Int32Array.of(8, 1, 2) }],
  ])('keeps samples apart that differ in %s', (_, difference) => {
    expect(mergeSamples([sampleOf([1, 2], [1, 1]), sampleOf([1, 2], [1, 1], difference)])).toHaveLength(2);
  });

  it('takes the normalizer from every sample, dropped ones too', () => {
    const samples = [sampleOf([1, 2], [0, 0]), sampleOf([1, 2, 3], [1, 1, 1])];
    const of = (aggregate: Extract<LossSpec, { type: 'ppo-clip' }>['aggregate']) =>
      normalizerOf(samples, { type: 'ppo-clip', clip: 0.2, aggregate });
    expect(of('token-mean')).toBe(5);
    expect(of('seq-mean-token-sum')).toBe(2);
    expect(of('seq-mean-token-sum-norm')).toBe(3);
  });

  it('refuses arrays of different lengths and advantages that are not numbers', () => {
    expect(() => mergeSamples([sampleOf([1, 2], [1])])).toThrow('advantages[0] has 2 entries, tokens[0] has 3');
    expect(() => mergeSamples([sampleOf([1], [Number.NaN])])).toThrow('an advantage of agent solver is not a number');
  });
});
