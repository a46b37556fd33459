import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pairedInterval } from './paired-interval.js';

describe('pairedInterval', () => {
  /** Half the width of the interval in standard errors: the quantile itself. */
  const quantile = (n: number, level: number) => {
    const differences = Array.from({ length: n }, (_, i) => (i % 2 === 0 ? 1 : -1) + (n % 2 === 1 && i === 0 ? 1 : 0));
    const { mean, interval } = pairedInterval(differences, level);
    const squares = differences.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    return ((interval?.high ?? 0) - mean) / Math.sqrt(squares / (n - 1) / n);
  };

  it.each([
    [1, 0.95, 12.7062],
    [2, 0.95, 4.3027],
    [3, 0.95, 3.1824],
    [4, 0.95, 2.7764],
    [9, 0.95, 2.2622],
    [30, 0.95, 2.0423],
    [4, 0.99, 4.6041],
    [5, 0.9, 2.015],
    [1000, 0.95, 1.9623],
  ])('with %d degrees of freedom at level %d takes the tabled t of %d', (freedom, level, t) => {
    expect(quantile(freedom + 1, level)).toBeCloseTo(t, 3);
  });

  it('has no interval for one pair', () => {
    expect(pairedInterval([0.25])).toEqual({ mean: 0.25 });
  });

  it('holds the mean, moves with the differences and grows with them', () => {
    const numbers = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(numbers, fc.double({ min: -1, max: 1, noNaN: true }), (differences, shift) => {
        const { mean, interval } = pairedInterval(differences);
        const [low, high] = [interval?.low ?? Number.NaN, interval?.high ?? Number.NaN];
        expect(low).toBeLessThanOrEqual(mean);
        expect(high).toBeGreaterThanOrEqual(mean);
        const moved = pairedInterval(differences.map((value) => 2 * value + shift)).interval;
        expect(moved?.low).toBeCloseTo(2 * low + shift, 9);
        expect(moved?.high).toBeCloseTo(2 * high + shift, 9);
      }),
    );
  });
});
