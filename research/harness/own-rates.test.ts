import { describe, expect, it } from 'vitest';
import { curveScore, lastScore, PartResults } from './analysis.js';
import type { Job, OwnRates, Part, Regime } from './declaration.js';
import { fakePart, fakeResults } from './fake-results.js';
import {
  crossFitted,
  differenceAt,
  fittedDifference,
  fittedText,
  ownRatesFigure,
  ownRatesText,
  slopeOnRate,
} from './own-rates.js';

const own: OwnRates = {
  arms: ['a', 'b'],
  rates: [0.1, 0.01], // crossFitted sorts them
  variantAt: (arm, rate) => `${arm}-at-${rate}`,
  primary: [
    ['a', 'b'],
    ['b', 'a'],
  ],
  equivalent: { pair: ['b', 'a'], within: 0.5 },
};
const part: Part = {
  ...fakePart({ variants: ['a-at-0.1', 'a-at-0.01', 'b-at-0.1', 'b-at-0.01'] }),
  probe: undefined as never,
  ownRates: own,
};
const [regime] = part.regimes as [Regime];
const resultsOf = (score: (arm: string, rate: number, seed: number) => number | undefined) =>
  new PartResults(
    part,
    fakeResults(part, ({ variant, seed }: Job) => {
      const [arm = '', rate] = variant.id.split('-at-');
      return score(arm, Number(rate), seed);
    }),
  );

describe('rates that the other half of the seeds chooses', () => {
  it('are the best of the seeds of the other parity, and not of their own', () => {
    // The odd seeds are best at 0.1, the even ones at 0.01, so each has the rate that is worse for it.
    const fitted = crossFitted(
      resultsOf((_, rate, seed) => ((rate === 0.1) === (seed % 2 === 1) ? 0.9 : 0.2)),
      own,
    );
    expect(fitted?.a?.map(({ seed, rate }) => [seed % 2, rate])).toEqual(
      part.seeds.map((seed) => (seed % 2 === 1 ? [1, 0.01] : [0, 0.1])),
    );
    expect(fitted?.a?.map(({ run }) => lastScore(regime, run))).toEqual(part.seeds.map(() => 0.2));
  });

  it('are the smaller of two that are equal', () => {
    const fitted = crossFitted(
      resultsOf(() => 0.5),
      own,
    );
    expect(new Set(fitted?.b?.map(({ rate }) => rate))).toEqual(new Set([0.01]));
  });

  it('are not chosen before all runs are there', () => {
    const results = resultsOf((arm, rate, seed) => (arm === 'b' && rate === 0.1 && seed === 20 ? undefined : 0.5));
    expect(crossFitted(results, own)).toBeUndefined();
    expect(fittedText(results, own, ['a', 'b'])).toBe('nothing yet');
    const [claims] = ownRatesText(results, own);
    expect(claims).toMatch(/^When all runs are there/);
  });
});

describe('comparisons of arms', () => {
  const results = resultsOf((arm, rate, seed) => (arm === 'a' ? 0.5 : 0.4) + (rate === 0.1 ? 0.1 : 0) + seed / 1000);

  it('are over the seeds, each arm at its rate', () => {
    const fitted = crossFitted(results, own);
    if (fitted === undefined) throw new Error('all runs are there');
    const { pairs, mean, verdict } = fittedDifference(regime, fitted, ['a', 'b'], curveScore);
    expect([pairs, verdict]).toEqual([10, 'higher']);
    expect(mean).toBeCloseTo(0.1, 12);
    expect(fittedText(results, own, ['a', 'b'])).toMatch(/^\+10\.0 .*by Holm \.0039\)$/);
    expect(() => fittedText(results, own, ['a', 'a'])).toThrow('does not compare');
  });

  it('say that two arms are equivalent if the interval lies within the limit', () => {
    const text = ownRatesText(results, own).join('\n');
    expect(text).toMatch(/\| `a` minus `b` \|.*\| higher \|/);
    expect(text).toMatch(/\| `b` minus `a` \|.*\| equivalent \|/);
  });

  it('at equal rates leave out no seed that has both runs', () => {
    const some = resultsOf((arm, rate, seed) =>
      seed > 12 && arm === 'b' ? undefined : rate + (arm === 'a' ? 0.1 : 0),
    );
    expect(differenceAt(some, own, ['a', 'b'], 0.1)).toMatchObject({ pairs: 2, verdict: 'so far' });
  });

  it('claim nothing at any rate while one run is missing', () => {
    const some = resultsOf((arm, rate, seed) =>
      rate !== 0.1 && seed === 20 ? undefined : (arm === 'a' ? 0.5 : 0.4) + seed / 1000,
    );
    const text = ownRatesText(some, own).join('\n');
    expect(differenceAt(some, own, ['a', 'b'], 0.1)).toMatchObject({ pairs: 10 });
    expect(text).toContain('| 0.1 | so far +10.0');
    expect(text).not.toContain('p = ');
  });

  it('have a slope on the logarithm of the rate', () => {
    const growing = resultsOf((arm, rate, seed) => (arm === 'a' && rate === 0.1 ? 0.7 + (seed % 2) / 100 : 0.5));
    const { mean, pairs } = slopeOnRate(growing, own, ['a', 'b']);
    expect(pairs).toBe(10);
    expect(mean).toBeCloseTo(0.205, 12); // 0.2 or 0.21 for ten times the rate
  });

  it('are drawn side by side at each rate that has a run, each with the interval of its mean', () => {
    const some = resultsOf((arm, rate, seed) =>
      arm === 'b' && rate === 0.01 ? undefined : (arm === 'a' ? 0.5 : 0.4) + (seed % 2) / 100,
    );
    const { series, x } = ownRatesFigure(some);
    expect(x.names).toEqual(['0.1', '0.01']);
    expect(series.map(({ name, points }) => [name, points.map((point) => point.x.toFixed(2))])).toEqual([
      ['a', ['-0.03', '0.97']],
      ['b', ['0.03']],
    ]);
    const [first] = series[0]?.points ?? [];
    expect(first?.y).toBeCloseTo(50.5, 10);
    // Five of 50 and five of 51: s = .527 and t(9) = 2.262.
    expect((first?.high ?? 0) - (first?.low ?? 0)).toBeCloseTo((2 * 2.262 * 0.527) / Math.sqrt(10), 2);
  });
});
