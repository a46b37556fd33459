import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunSummary } from './ablation-summary.js';
import { bandOf, pairedDifferences, pairedInterval } from './paired-interval.js';

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

describe('pairedDifferences', () => {
  const runsOf = (differences: readonly number[]) =>
    differences.flatMap((difference, seed) =>
      [['a', 0.5] as const, ['b', 0.5 + difference] as const].map(([variant, score]) => {
        return { name: `${variant}-${seed}`, variant, seed, status: 'completed', score } as RunSummary;
      }),
    );
  it('compares the most runs that an ablation may have, in time', () => {
    const variants = Array.from({ length: 10_000 }, (_, i) => `v${i}`);
    const runs = variants.flatMap((variant, i) =>
      Array.from({ length: 10 }, (_, seed) => {
        return { name: `${variant}-${seed}`, variant, seed, status: 'completed', score: i } as RunSummary;
      }),
    );
    const differences = pairedDifferences(runs, variants, 'v0');
    expect(differences.at(-1)).toMatchObject({ variant: 'v9999', pairs: 10, mean: 9999 });
  });

  const judged = (differences: readonly number[]) => pairedDifferences(runsOf(differences), ['a', 'b'], 'a')[0];

  it.each([
    [[], 'unknown', undefined],
    [[0.1], 'unknown', undefined],
    [[0.1, 0.1], 'unknown', 0.5], // equal by chance, as scores of a few tasks are: the interval has no width
    [[0.1, 0.12, 0.11, 0.1, 0.12], 'unknown', 1 / 16],
    [[0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 'higher', 1 / 32],
    [[-0.1, -0.12, -0.11, -0.1, -0.12, -0.13], 'lower', 1 / 32],
    [[0.3, 0.2, 0.1, 0.2, 0.3, -0.02], 'inside', 1 / 16], // its interval leaves out 0
    [[0.3, -0.2, 0.1, -0.2, 0.3, -0.1], 'inside', 27 / 32],
    [[0, 0, 0, 0, 0, 0], 'inside', 1],
  ])('of %j says %s, with an exact p of %s', (differences, verdict, p) => {
    const { p: exact, ...one } = judged(differences) ?? {};
    expect(one).toMatchObject({ pairs: differences.length, verdict });
    if (p === undefined) expect(exact).toBeUndefined();
    else expect(exact).toBeCloseTo(p, 12);
  });

  it('judges more than 40 pairs, whose sign flips are too many, by the interval', () => {
    const differences = Array.from({ length: 41 }, (_, i) => 0.1 + 0.001 * i);
    expect(judged(differences)).toMatchObject({ pairs: 41, verdict: 'higher' });
    expect(judged(differences)).not.toHaveProperty('p');
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
