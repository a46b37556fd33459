import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compare,
  correlation,
  type Dose,
  dosesOf,
  highest,
  PartResults,
  responseOf,
  ruleOf,
  slopeOf,
} from './analysis.js';
import type { Job } from './declaration.js';
import { fakePart, fakeResults } from './fake-results.js';
import type { Results } from './stored-result.js';

describe('compare', () => {
  it('claims a difference from ten pairs on, if the interval excludes 0', () => {
    const gains = (n: number, centre: number) =>
      Array.from({ length: n }, (_, i) => centre + (i % 2 === 0 ? 0.01 : -0.01));
    expect(compare(gains(9, 0.2)).verdict).toBe('so far');
    expect(compare(gains(10, 0.2)).verdict).toBe('higher');
    expect(compare(gains(10, -0.2)).verdict).toBe('lower');
    expect(compare(gains(10, 0.001)).verdict).toBe('no difference shown');
    expect(compare(gains(10, 0.001))).toMatchObject({ pairs: 10, better: 5 });
  });
});

describe('the highest variant', () => {
  const sweep = fakePart({ doses: [1], variants: ['low', 'high', 'middle'] });
  const scores: Readonly<Record<string, number>> = { low: 0.2, high: 0.9, middle: 0.5 };
  const highestOf = (results: Results) => {
    const [regime] = sweep.regimes;
    return regime && highest(new PartResults(sweep, results), regime, sweep.variants);
  };

  it('is the one whose runs end highest, once all of them are there', () => {
    const score = ({ variant, seed }: Job) => (scores[variant.id] ?? 0) + seed / 1000;
    expect(highestOf(fakeResults(sweep, score))?.id).toBe('high');
    const lacking = ({ variant, seed }: Job) => (variant.id === 'low' && seed === 11 ? undefined : 0.5);
    expect(highestOf(fakeResults(sweep, lacking))).toBeUndefined();
  });
});

describe('slope and correlation', () => {
  const numbers = fc.array(fc.double({ min: -3, max: 3, noNaN: true }), { minLength: 3, maxLength: 12 });

  it('equal the parameters of the line through the points', () => {
    fc.assert(
      fc.property(numbers, fc.double({ min: 0.1, max: 5, noNaN: true }), (xs, slope) => {
        const points = xs.map((x) => ({ x, y: 1 - slope * x }));
        fc.pre(Math.max(...xs) - Math.min(...xs) > 0.01);
        expect(slopeOf(points)).toBeCloseTo(-slope, 6);
        expect(correlation(points)).toBeCloseTo(-1, 6);
      }),
    );
  });

  it('are undefined if the points do not spread', () => {
    expect(
      slopeOf([
        { x: 1, y: 0 },
        { x: 1, y: 2 },
      ]),
    ).toBeUndefined();
    expect(
      correlation([
        { x: 1, y: 0 },
        { x: 2, y: 1 },
      ]),
    ).toBeNaN();
    expect(correlation([0, 1, 2].map((x) => ({ x, y: 3 })))).toBeNaN();
  });
});

describe('the response to a dose', () => {
  const part = fakePart({ doses: [1, 2, 4] });
  const [, drmas = part.variants[0]] = part.variants;
  if (drmas === undefined) throw new Error('the part has variants');
  /** The gain is a tenth for each doubling, and a little that differs from seed to seed. */
  const results = fakeResults(part, ({ regime, variant, seed }) =>
    variant.id === 'drmas' ? 0.5 + 0.1 * Math.log2(regime.dose?.value ?? 1) * (1 + seed / 100) : 0.5,
  );

  it('is a slope for each seed, with an interval over seeds', () => {
    const { slope, correlation, points } = responseOf([new PartResults(part, results)], 'drmas', 'inflation');
    expect(slope).toMatchObject({ pairs: 10, better: 10, verdict: 'higher' });
    expect(slope.mean).toBeCloseTo(0.1 * (1 + 15.5 / 100), 6);
    expect(correlation).toBeGreaterThan(0.99);
    expect(points).toBe(30);
    const byShare = responseOf([new PartResults(part, results)], 'drmas', 'ownShare');
    expect(byShare.slope.mean).toBeCloseTo(slope.mean, 6); // here every doubling of the one halves the other
  });

  it('is a rule if doses above the threshold gain', () => {
    const doses = dosesOf(new PartResults(part, results), drmas);
    expect(doses.map(({ predicted }) => predicted.inflation)).toEqual([1, 2, 4]);
    expect(ruleOf(doses, 'inflation')).toEqual({ hinted: { gained: 1, doses: 1 }, silent: { gained: 1, doses: 2 } });
    expect(ruleOf(doses, 'ownShare')).toEqual({ hinted: { gained: 2, doses: 2 }, silent: { gained: 0, doses: 1 } });
    const unprobed = dosesOf(
      new PartResults(
        part,
        fakeResults(part, ({ kind }) => (kind === 'probe' ? undefined : 0.5)),
      ),
      drmas,
    );
    expect(unprobed.map(({ predicted }) => predicted.inflation)).toEqual([Number.NaN, Number.NaN, Number.NaN]);
    const few = doses.map((dose): Dose => ({ ...dose, gain: compare([0.1, 0.2]) }));
    expect(ruleOf(few, 'ownShare')).toEqual({ hinted: { gained: 0, doses: 0 }, silent: { gained: 0, doses: 0 } });
  });
});
