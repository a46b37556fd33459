import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bandOf, holm, pairedInterval, signFlipP } from './paired-interval.js';

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

describe('signFlipP', () => {
  const differences = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 1, maxLength: 8 });

  it('gives known values', () => {
    expect(signFlipP([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).toBe(2 / 1024); // all of one sign: the smallest possible
    expect(signFlipP([1, -1])).toBe(1);
    expect(signFlipP([0, 0, 0])).toBe(1);
    expect(signFlipP([3, 2, -1])).toBe(4 / 8); // |sum| >= 4: +++, ++-, and their opposites
    expect(signFlipP([])).toBe(1);
  });

  it('does not depend on the sign, the scale or the order', () => {
    fc.assert(
      fc.property(differences, fc.double({ min: 0.1, max: 10, noNaN: true }), (values, scale) => {
        const p = signFlipP(values);
        expect(p).toBeGreaterThanOrEqual(2 ** (1 - values.length) - 1e-12);
        expect(p).toBeLessThanOrEqual(1);
        expect(signFlipP(values.map((value) => -scale * value).reverse())).toBeCloseTo(p, 9);
      }),
    );
  });

  it('counts as many assignments as an enumeration of all', () => {
    // Multiples of a quarter, so that many sums are equal.
    const steps = fc.array(
      fc.integer({ min: -6, max: 6 }).map((step) => step / 4),
      { minLength: 1, maxLength: 9 },
    );
    fc.assert(
      fc.property(steps, (values) => {
        const all = values.reduce((sums, value) => sums.flatMap((sum) => [sum + value, sum - value]), [0]);
        const observed = Math.abs(values.reduce((sum, value) => sum + value, 0));
        expect(signFlipP(values)).toBe(all.filter((sum) => Math.abs(sum) >= observed).length / all.length);
      }),
    );
  });

  it('takes up to 40 pairs', () => {
    expect(signFlipP(new Array(40).fill(1))).toBe(2 / 2 ** 40);
    expect(() => signFlipP(new Array(41).fill(1))).toThrow(/at most 40 pairs, got 41/);
  });
});

describe('holm', () => {
  it('gives the values of a worked example', () => {
    expect(holm([0.01, 0.04, 0.03, 0.005])).toEqual([0.03, 0.06, 0.06, 0.02].map((p) => expect.closeTo(p, 12)));
    expect(holm([0.6, 0.7])).toEqual([1, 1]);
  });

  it('keeps the order of the values, and lowers none', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true })), (ps) => {
        const adjusted = holm(ps);
        ps.forEach((p, i) => {
          expect(adjusted[i]).toBeGreaterThanOrEqual(p);
          ps.forEach((other, j) => {
            if (p < other) expect(adjusted[i]).toBeLessThanOrEqual(adjusted[j] as number);
          });
        });
      }),
    );
  });
});

it('has mean, minimum and maximum at the steps that all runs have', () => {
  const runs = [
    [
      { x: 0, y: 1 },
      { x: 5, y: 4 },
    ],
    [
      { x: 0, y: 3 },
      { x: 5, y: 2 },
      { x: 9, y: 7 },
    ],
    [],
  ];
  expect(bandOf(runs)).toEqual([
    { x: 0, y: 2, low: 1, high: 3 },
    { x: 5, y: 3, low: 2, high: 4 },
  ]);
  expect(bandOf([])).toEqual([]);
});

it('does not depend on the order of the runs, and one run is its own band', () => {
  const number = fc.double({ min: -9, max: 9, noNaN: true }).map((value) => value + 0); // a mean has no -0
  const line = fc.array(number, { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 4 }), (lines) => {
      const runs = lines.map((values) => values.map((y, x) => ({ x, y })));
      const band = bandOf(runs);
      const other = bandOf(runs.toReversed());
      expect(other.map(({ low, high }) => [low, high])).toEqual(band.map(({ low, high }) => [low, high]));
      for (const { y, low, high } of band) expect(y >= low - 1e-9 && y <= high + 1e-9).toBe(true);
      const [first = []] = runs;
      expect(bandOf([first])).toEqual(first.map(({ x, y }) => ({ x, y, low: y, high: y })));
    }),
  );
});
