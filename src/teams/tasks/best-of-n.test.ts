import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { golden } from '../../../test/goldens.js';
import { bestOfN, majorityOfN, worstOfN } from './best-of-n.js';
import { majorityAtK } from './metrics.js';

/** Every way to draw n of the items with replacement. */
const draws = <T>(items: readonly T[], n: number): T[][] =>
  n === 0 ? [[]] : draws(items, n - 1).flatMap((drawn) => items.map((item) => [...drawn, item]));
const average = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;

const scores = fc.array(fc.integer({ min: -8, max: 8 }), { minLength: 1, maxLength: 5 });
const answers = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 5 });
const few = fc.integer({ min: 1, max: 4 });

describe('bestOfN and worstOfN', () => {
  it('are the means over every possible draw', () => {
    fc.assert(
      fc.property(scores, few, (values, n) => {
        const drawn = draws(values, n);
        expect(bestOfN(values, n)).toBeCloseTo(average(drawn.map((one) => Math.max(...one))), 9);
        expect(worstOfN(values, n)).toBeCloseTo(average(drawn.map((one) => Math.min(...one))), 9);
      }),
    );
  });

  it('of one draw are the mean; more draws never make the best worse', () => {
    fc.assert(
      fc.property(scores, few, (values, n) => {
        expect(bestOfN(values, 1)).toBeCloseTo(average(values), 9);
        expect(bestOfN(values, n + 1)).toBeGreaterThanOrEqual(bestOfN(values, n) - 1e-12);
        expect(bestOfN(values, 1000)).toBeLessThanOrEqual(Math.max(...values) + 1e-12);
      }),
    );
  });
});

describe('majorityOfN', () => {
  it('is the share of draws whose most frequent answer is right', () => {
    fc.assert(
      fc.property(answers, few, (predictions, n) => {
        const right = draws(predictions, n).map((drawn) => majorityAtK(drawn, 'a'));
        expect(majorityOfN(predictions, 'a', n)).toBeCloseTo(average(right), 9);
      }),
    );
  });

  it('goes to the favourite as draws grow in number', () => {
    expect(majorityOfN(['a', 'a', 'b', 'c'], 'a', 300)).toBeGreaterThan(0.99);
    expect(majorityOfN(['a', 'b', 'b'], 'a', 100)).toBeLessThan(0.01);
  });
});

it('refuses invalid arguments', () => {
  expect(() => bestOfN([], 1)).toThrow('at least one score');
  expect(() => worstOfN([Number.NaN], 1)).toThrow('finite');
  expect(() => bestOfN([1], 0)).toThrow('n must be a positive integer, got 0');
  expect(() => majorityOfN([], 'a', 1)).toThrow('at least one prediction');
  expect(() => majorityOfN(['a'], 'a', 1.5)).toThrow('got 1.5');
});

it('agree with the exact figures', () => {
  type At = { bestExact: number; worstExact: number; majorityExact: number };
  type Case = { scores: number[]; predictions: string[]; reference: string; at: Record<string, At> };
  for (const one of golden<{ cases: Case[] }>('estimators/best_of').cases)
    for (const [n, expected] of Object.entries(one.at)) {
      expect(bestOfN(one.scores, Number(n))).toBeCloseTo(expected.bestExact, 12);
      expect(worstOfN(one.scores, Number(n))).toBeCloseTo(expected.worstExact, 12);
      expect(majorityOfN(one.predictions, one.reference, Number(n))).toBeCloseTo(expected.majorityExact, 12);
    }
});
