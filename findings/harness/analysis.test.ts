import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../src/base/core/random.js';
import { estimateStep } from '../../src/method/advantage/estimate.js';
import {
  compare,
  correlation,
  type Dose,
  dosesOf,
  highest,
  PartResults,
  rareCallerInflation,
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

describe('the inflation of an agent that some episodes call', () => {
  for (const { tags, ...caller } of [
    { called: 0.08, all: 0.77, groupSize: 16, share: 0.25, tags: ['verify'] },
    { called: 0.125, all: 0.91, groupSize: 16, share: 0.1, tags: ['verify'] },
    { called: 0.35, all: 0.21, groupSize: 5, share: 0.6, tags: [] },
    { called: 0.5, all: 0.15, groupSize: 5, share: 0.3, tags: [] },
  ])
    it(`is what the estimator predicts on played groups: ${JSON.stringify(caller)}`, { tags }, () => {
      const random = new RandomStream('closed form', JSON.stringify(caller));
      // The success of the other episodes makes up for the called ones.
      const other = (caller.all - caller.share * caller.called) / (1 - caller.share);
      const turns = Array.from({ length: 6000 * caller.groupSize }, (_, e) => {
        const called = random.chance(caller.share);
        const reward = Number(random.chance(called ? caller.called : other));
        const of = { task: `t${Math.floor(e / caller.groupSize)}`, episode: `e${e}`, reward };
        const first = { ...of, agent: 'first', turn: 0 };
        return called ? [first, { ...of, agent: 'called', turn: 1 }] : [first];
      }).flat();
      const measured = estimateStep(turns, { type: 'grpo' }).inflation.called ?? Number.NaN;
      expect(measured / rareCallerInflation(caller)).toBeGreaterThan(0.97);
      expect(measured / rareCallerInflation(caller)).toBeLessThan(1.03);
    });

  it('tends to the form of the lemma in large groups, and never exceeds the size of the group less one', () => {
    const share = fc.double({ min: 0.02, max: 0.98, noNaN: true });
    fc.assert(
      fc.property(share, share, fc.integer({ min: 2, max: 64 }), (q, p, groupSize) => {
        const lemma = (q * (1 - 2 * p) + p * p) / (p * (1 - p));
        expect(rareCallerInflation({ called: q, all: p, groupSize: 1e5 })).toBeCloseTo(lemma, 1);
        expect(rareCallerInflation({ called: q, all: p, groupSize })).toBeLessThanOrEqual(groupSize - 1 + 1e-9);
        expect(rareCallerInflation({ called: p, all: p, groupSize })).toBeCloseTo(1, 6);
      }),
    );
  });

  it("has the values of the paper's search team, with groups of 5, that docs/the-paper.md states", () => {
    expect(rareCallerInflation({ called: 0.35, all: 0.6 * 0.35, groupSize: 5 })).toBeCloseTo(1.31, 2);
    expect(rareCallerInflation({ called: 0.5, all: 0.3 * 0.5, groupSize: 5 })).toBeCloseTo(1.95, 2);
  });
});
