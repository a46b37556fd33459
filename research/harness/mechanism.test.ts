import { symbolsTokenizer } from '@drmas/engine/internal/model/tokenizers/symbols';
import { choicesTokenizer } from '@drmas/engine/tokens';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PartResults } from './analysis.js';
import { jobName, jobsOf, type Part } from './declaration.js';
import { fakePart, fakeResults, fakeTrain } from './fake-results.js';
import { mechanismTable, noiseTable, overlapSlope, signalAndNoise } from './mechanism.js';
import { codeToken, overlapOf } from './overlap.js';
import type { Results } from './stored-result.js';

const part: Part = { ...fakePart({ doses: [3, 1, 2] }), probe: undefined as never, overlap: true };
const overlapAt = (dose = 0) => dose / 4;
const results = (missing?: string) =>
  fakeResults(part, (job) => {
    const { kind, regime, variant, seed } = job;
    if (jobName(job) === missing) return undefined;
    const overlap = overlapAt(regime.dose?.value);
    if (kind === 'overlap') return overlap;
    return variant.id === 'drmas' ? 0.5 + 0.4 * overlap + seed / 1000 : 0.5;
  });

describe('the overlap of contexts', () => {
  const vector = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 });
  const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);

  it('is the mean inner product of different gradients over their mean squared norm', () => {
    fc.assert(
      fc.property(fc.array(vector, { minLength: 2, maxLength: 6 }), (gradients) => {
        const squares = gradients.map((one) => dot(one, one));
        fc.pre(squares.some((square) => square > 1e-3));
        const products = gradients.flatMap((a, i) => gradients.flatMap((b, j) => (i === j ? [] : [dot(a, b)])));
        const total = gradients.reduce((sum, one) => sum.map((value, i) => value + (one[i] ?? 0)));
        const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
        const norms = { each: squares.map(Math.sqrt), sum: Math.sqrt(dot(total, total)) };
        expect(overlapOf([norms, norms])).toBeCloseTo(mean(products) / mean(squares), 6);
      }),
    );
  });

  it('is 1 for equal gradients, and 0 for gradients without common weights', () => {
    expect(overlapOf([{ each: [2, 2, 2], sum: 6 }])).toBeCloseTo(1, 12);
    expect(overlapOf([{ each: [3, 4], sum: 5 }])).toBeCloseTo(0, 12);
    expect(() => overlapOf([{ each: [1], sum: 1 }])).toThrow('at least two contexts');
  });

  it('is measured on the one token that a code is in the tokenizer of the model', () => {
    const roles = { stop: '<end>', endOfUser: ': ', endOfAssistant: '<end>' };
    const words = symbolsTokenizer({ type: 'symbols', symbols: ['<end>', ': ', 'k1 ', 'k', '2'], ...roles });
    expect(codeToken(words, 'k1')).toBe(2);
    expect(() => codeToken(words, 'k2')).toThrow('k2 is not one token');
    expect(codeToken(choicesTokenizer({ choices: ['k1', 'k2'], features: ['hot'] }), 'k2')).toBe(1);
  });

  it('orders the models, and the difference rises with it', () => {
    const of = new PartResults(part, results());
    const rows = mechanismTable(of).split('\n').slice(2);
    expect(rows.map((row) => row.split(' | ').slice(0, 2).join(' '))).toEqual([
      '| dose 1 0.25',
      '| dose 2 0.50',
      '| dose 3 0.75',
    ]);
    for (const row of rows) expect(row).toMatch(/\| \.0059 \| .* \| higher \|$/); // Holm over three of p = .002
    expect(overlapSlope(of)).toMatch(/^\+40\.0 \[\+40\.0, \+40\.0\] points, 10 seeds/);
  });

  it('leaves out a model until its pairs and overlaps are all there', () => {
    for (const kind of ['overlap', 'train'] as const) {
      const job = jobsOf(part).find((one) => one.kind === kind && one.regime.dose?.value === 2);
      const of = new PartResults(part, results(job && jobName(job)));
      expect(mechanismTable(of)).not.toContain('dose 2');
    }
    expect(
      mechanismTable(
        new PartResults(
          part,
          fakeResults(part, () => undefined),
        ),
      ),
    ).toBe('nothing yet');
  });
});

describe('signal and noise', () => {
  it('are what small and large steps have in common, and what only small ones have', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 9, noNaN: true }),
        fc.double({ min: 0.01, max: 9, noNaN: true }),
        fc.integer({ min: 2, max: 99 }),
        (signal, noise, steps) => {
          const found = signalAndNoise(Math.sqrt(signal + noise), Math.sqrt(signal + noise / steps), steps);
          expect(found.signal).toBeCloseTo(signal, 6);
          expect(found.noise).toBeCloseTo(noise, 6);
        },
      ),
    );
  });

  it('are shown for each estimator, and not before all runs are there', () => {
    const variants = ['grpo-small', 'grpo-large', 'drmas-small', 'drmas-large'];
    const still: Part = { ...fakePart({ variants, seeds: [1, 2, 3] }), still: true };
    const norms: Record<string, number[]> = { 'grpo-small': [2, 2], 'grpo-large': [Math.sqrt(2.5)] };
    const of = (last: number): Results => ({
      isStale: () => false,
      of(job) {
        if (job.kind !== 'train' || job.seed > last) return undefined;
        const run = fakeTrain(job, 0.5);
        const [agent] = Object.values(run.agents);
        if (agent === undefined) throw new Error('no agent');
        return { ...run, agents: { solver: { ...agent, norms: norms[job.variant.id] ?? [3, 3] } } };
      },
    });
    // signal^2 = 2 * 2.5 - 4 = 1, noise^2 = 3; without noise the large step has the norm of the small ones.
    expect(noiseTable(new PartResults(still, of(3)))).toMatch(
      /\| dose 2 \| 1\.0 \| 1\.7 \| 0\.33 \| 3\.0 \| 0 \| – \|$/,
    );
    expect(noiseTable(new PartResults(still, of(2)))).toBe('nothing yet');
  });
});
