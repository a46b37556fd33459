import { mean } from '@drmas/engine/math';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { golden } from '../../../test/goldens.js';
import { averageAtK, bestAtK, bootstrapInterval, majorityAtK, passAtK, scoreInterval } from './metrics.js';

describe('passAtK', () => {
  it('is the probability of drawing at least one right sample without replacement', () => {
    expect(passAtK(4, 1, 1)).toBeCloseTo(1 / 4, 12);
    expect(passAtK(4, 1, 2)).toBeCloseTo(1 / 2, 12);
    expect(passAtK(10, 0, 3)).toBe(0);
    expect(passAtK(10, 8, 3)).toBe(1);
  });

  it('refuses counts that cannot be', () => {
    for (const [n, c, k] of [
      [2, 3, 1],
      [2, 1, 3],
      [2, 1, 0],
      [2.5, 1, 1],
      [2, -1, 1],
    ] as const) {
      expect(() => passAtK(n, c, k)).toThrow('passAtK needs integers');
    }
  });
});

describe('bestAtK', () => {
  const scores = fc.array(fc.integer({ min: -8, max: 8 }), { minLength: 1, maxLength: 6 });
  /** Every choice of k of the values. */
  const choices = (values: readonly number[], k: number): number[][] =>
    k === 0
      ? [[]]
      : values.flatMap((value, i) => choices(values.slice(i + 1), k - 1).map((others) => [value, ...others]));

  it('is the mean over every choice of k of its best', () => {
    fc.assert(
      fc.property(scores, fc.nat(), (values, any) => {
        const k = 1 + (any % values.length);
        const best = choices(values, k).map((chosen) => Math.max(...chosen));
        expect(bestAtK(values, k)).toBeCloseTo(best.reduce((a, b) => a + b, 0) / best.length, 9);
      }),
    );
  });

  it('is passAtK for scores of 0 and 1', () => {
    expect(bestAtK([0, 1, 0, 1, 0], 3)).toBeCloseTo(passAtK(5, 2, 3), 12);
    const many = Array.from({ length: 2000 }, (_, i) => Number(i % 4 === 0));
    expect(bestAtK(many, 64)).toBeCloseTo(passAtK(2000, 500, 64), 12);
  });

  it('refuses more samples than there are', () => {
    expect(() => bestAtK([1], 2)).toThrow('bestAtK needs an integer 1 <= k <= 1');
    expect(() => bestAtK([], 0)).toThrow('bestAtK');
  });
});

describe('averageAtK', () => {
  it('averages the samples of a task, and gives tasks equal weight for any number of samples', () => {
    expect(averageAtK([1, 0, 0, 1])).toBe(0.5);
    expect(averageAtK([[1, 1, 1, 1], [0]])).toBe(0.5);
    expect(averageAtK([])).toBe(0);
  });
});

describe('majorityAtK', () => {
  it('takes the most frequent answer, the first one of a tie', () => {
    expect(majorityAtK(['3', '7', '7'], '7')).toBe(1);
    expect(majorityAtK(['3', '7', '7', '3'], '7')).toBe(0);
    expect(majorityAtK(['7', '3', '3', '7'], '7')).toBe(1);
  });

  it('gives a missing answer no vote', () => {
    expect(majorityAtK([null, undefined, null, '7'], '7')).toBe(1);
    expect(majorityAtK([null, undefined], '7')).toBe(0);
    expect(majorityAtK([], '7')).toBe(0);
  });

  it('counts answers that mean the same together', () => {
    const same = (a: string, b: string) => Number(a) === Number(b);
    expect(majorityAtK(['3', '07', '7', '3', '7.0'], '7', same)).toBe(1);
  });
});

describe('bootstrapInterval', () => {
  it('is the same for the same seed and differs for another', () => {
    const data = Array.from({ length: 40 }, (_, i) => Math.sin(i * i));
    expect(bootstrapInterval(data, { seed: 3 })).toEqual(bootstrapInterval(data, { seed: 3 }));
    expect(bootstrapInterval(data, { seed: 3 })).not.toEqual(bootstrapInterval(data, { seed: 4 }));
  });

  it('contains the mean, stays within the data and widens with the level', () => {
    const data = fc.array(fc.double({ min: -5, max: 5, noNaN: true }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(data, (values) => {
        const narrow = bootstrapInterval(values, { level: 0.5, resamples: 200 });
        const wide = bootstrapInterval(values, { level: 0.99, resamples: 200 });
        expect(wide.low).toBeLessThanOrEqual(narrow.low);
        expect(wide.high).toBeGreaterThanOrEqual(narrow.high);
        expect(wide.low).toBeGreaterThanOrEqual(Math.min(...values) - 1e-12);
        expect(wide.high).toBeLessThanOrEqual(Math.max(...values) + 1e-12);
      }),
      { numRuns: 30 },
    );
    expect(bootstrapInterval([0.3, 0.3, 0.3])).toMatchObject({ low: expect.closeTo(0.3), high: expect.closeTo(0.3) });
  });

  it('refuses invalid arguments', () => {
    expect(() => bootstrapInterval([])).toThrow('at least one task');
    expect(() => bootstrapInterval([Number.NaN])).toThrow('finite');
    expect(() => bootstrapInterval([1], { level: 95 })).toThrow('level must lie between 0 and 1');
    expect(() => bootstrapInterval([1], { resamples: 0 })).toThrow('resamples');
  });
});

describe('scoreInterval', () => {
  it('is the bootstrap interval of scores that differ', () => {
    const scores = [1, 0, 0.5, 1];
    expect(scoreInterval(scores, { level: 0.9, seed: 2 })).toEqual(bootstrapInterval(scores, { level: 0.9, seed: 2 }));
  });

  it('is never without width, and the exact one if no task is solved, or each is', () => {
    // Clopper and Pearson: none of 10 leaves at most 1 - .025^(1/10).
    const none = scoreInterval(Array(10).fill(0), { level: 0.95 });
    expect(none).toEqual({ mean: 0, low: 0, high: expect.closeTo(0.3085, 4) });
    const all = scoreInterval(Array(10).fill(1), { level: 0.95 });
    expect(all).toEqual({ mean: 1, low: expect.closeTo(1 - none.high, 12), high: 1 });
    const { low, high } = scoreInterval(Array(400).fill(0.5), { level: 0.95 });
    expect([low, high]).toEqual([expect.closeTo(0.4954, 4), expect.closeTo(0.5046, 4)]);
    // The means of the same scores in two orders differ by rounding.
    const orders = [mean([0.1, 0.2, 0.3]), mean([0.3, 0.2, 0.1])];
    expect(orders[0]).not.toBe(orders[1]);
    expect(scoreInterval(orders, { level: 0.95 }).high).toBeGreaterThan(0.8);
    expect(scoreInterval([0.5], { level: 0.95 })).toMatchObject({
      low: expect.closeTo(0.0125),
      high: expect.closeTo(0.9875),
    });
  });
});

describe('estimators agree with the originals', () => {
  it('pass@k', () => {
    type Grid = { n: number; c: number; k: number; passAtK: number };
    type Case = { samples: number; correct: number[]; k: number; perTask: number[] };
    const { cases, grid } = golden<{ cases: Case[]; grid: Grid[] }>('estimators/passk');
    for (const { n, c, k, passAtK: expected } of grid) expect(passAtK(n, c, k)).toBeCloseTo(expected, 12);
    for (const { samples, correct, k, perTask } of cases) {
      correct.forEach((c, i) => {
        expect(passAtK(samples, c, k)).toBeCloseTo(perTask[i] ?? Number.NaN, 12);
      });
    }
  });

  it('empirical pass@k and avg@k', () => {
    type Case = { k: number; passes: number[][]; passAtK: number; avgAtK: number };
    for (const { k, passes, ...expected } of golden<{ cases: Case[] }>('estimators/empirical').cases) {
      expect(averageAtK(passes)).toBeCloseTo(expected.avgAtK, 12);
      const passed = passes.map((scores) => passAtK(scores.length, scores.filter((score) => score === 1).length, k));
      expect(averageAtK(passed)).toBeCloseTo(expected.passAtK, 12);
    }
  });

  it('majority@k', () => {
    type Case = { predictions: string[]; reference: string; value: number };
    for (const { predictions, reference, value } of golden<{ cases: Case[] }>('estimators/majority').cases) {
      expect(majorityAtK(predictions, reference)).toBe(value);
    }
  });

  it('percentile bootstrap', () => {
    type Case = { data: number[]; level: number; seed: number; mean: number } & Record<
      'largeLow' | 'largeHigh' | 'largeStandardError',
      number
    >;
    for (const { data, level, seed, ...expected } of golden<{ cases: Case[] }>('estimators/bootstrap').cases) {
      const { mean, low, high } = bootstrapInterval(data, { level, seed, resamples: 10_000 });
      const tolerance = (3 * expected.largeStandardError) / 10;
      expect(mean).toBeCloseTo(expected.mean, 12);
      expect(Math.abs(low - expected.largeLow)).toBeLessThan(tolerance);
      expect(Math.abs(high - expected.largeHigh)).toBeLessThan(tolerance);
    }
  });
});
