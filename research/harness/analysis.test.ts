import { RandomStream } from '@drmas/engine/math';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
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
  slopeOnDose,
} from './analysis.js';
import {
  areaUnderCurve,
  blindFact,
  blindText,
  calibrationText,
  chooseSpread,
  isTrusted,
  rankCorrelation,
  regimesText,
  wilson,
} from './blind.js';
import type { Job, Part } from './declaration.js';
import { fakePart, fakeResults, fakeTrain } from './fake-results.js';
import type { Results } from './stored-result.js';
import { rateFactorFigure, ratioSlopeText, ratiosTable, soonerTable, waitingFigure, waitingTable } from './waiting.js';

describe('compare', () => {
  it('claims a difference from ten pairs on, if the interval excludes 0', () => {
    const gains = (n: number, centre: number) =>
      Array.from({ length: n }, (_, i) => centre + (i % 2 === 0 ? 0.01 : -0.01));
    expect(compare(gains(9, 0.2)).verdict).toBe('so far');
    expect(compare(gains(3, 0.2), 3).verdict).toBe('too few pairs');
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

  it('is the same slope on the dose itself, over the whole curve', () => {
    const slope = slopeOnDose(new PartResults(part, results), part.regimes, drmas);
    expect(slope).toMatchObject({ pairs: 10, verdict: 'higher' });
    expect(slope.mean).toBeCloseTo(0.1 * (1 + 15.5 / 100), 6);
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

describe('the blind test of the probe', () => {
  it('takes four candidates of each recipe from each fifth of the own share, in their order', () => {
    const [like] = fakePart().regimes;
    if (like === undefined) throw new Error('there is no regime');
    const candidates = Array.from({ length: 120 }, (_, i) => ({
      regime: { ...like, id: `r${i}`, recipe: i % 2 === 0 ? 'even' : 'odd' },
      ownShare: i === 0 ? Number.NaN : (i % 10) / 10 + 0.05,
    }));
    const chosen = chooseSpread(candidates);
    expect(chosen).toHaveLength(40);
    expect(chosen.map(({ id }) => id)).toEqual(Array.from({ length: 40 }, (_, i) => `r${i + 1}`));
    const low = candidates.map((one, i) => ({ ...one, ownShare: i < 100 ? 0.1 : 0.9 }));
    const spread = chooseSpread(low).map(({ id }) => Number(id.slice(1)));
    expect(spread.filter((i) => i >= 100)).toHaveLength(8);
    expect(spread).toHaveLength(40);
  });

  it('measures how well a value sorts cases, as counting all pairs does', () => {
    const cases = (values: number[], labels: number[]) =>
      values.map((value, i) => ({ value, isPositive: labels[i] === 1 }));
    expect(areaUnderCurve(cases([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0]))).toBe(1);
    expect(areaUnderCurve(cases([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]))).toBe(0);
    expect(areaUnderCurve(cases([0.1, 0.8, 0.2, 0.8], [1, 1, 0, 0]))).toBe((1 + 1 + 0 + 0.5) / 4);
    expect(areaUnderCurve(cases([0.1], [1]))).toBeNaN();
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.boolean()), { minLength: 2 }), (list) => {
        const of = list.map(([value, isPositive]) => ({ value, isPositive }));
        const reversed = areaUnderCurve(of.map((one) => ({ ...one, value: -one.value })));
        if (!Number.isNaN(reversed)) expect(areaUnderCurve(of) + reversed).toBeCloseTo(1, 12);
      }),
    );
  });

  it("has Wilson's interval and Spearman's correlation of the textbooks", () => {
    const [low, high] = wilson(8, 10);
    expect([low.toFixed(3), high.toFixed(3)]).toEqual(['0.490', '0.943']);
    expect(wilson(0, 10)[0]).toBeCloseTo(0, 12);
    expect(rankCorrelation([1, 2, 3], [10, 20, 90])).toBe(1);
    expect(
      rankCorrelation([106, 100, 86, 101, 99, 103, 97, 113, 112, 110], [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]),
    ).toBe(-29 / 165);
  });

  it('trusts the rule only if it finds the gains and is silent elsewhere', () => {
    const part = { ...fakePart({ doses: [1, 4] }), probeSeeds: [11] }; // their own shares are .8 and .2
    const gaining = (dose: number) =>
      fakeResults(part, ({ regime, variant, seed }) =>
        variant.id === 'drmas' && regime.dose?.value === dose ? 0.6 + seed / 1000 : 0.5 + seed / 1000,
      );
    expect(blindText(part, gaining(4))).toContain('| **all (primary)** | 1 of 2 | 0 | 1.00 [1.00, 1.00] | 1.00 [');
    expect(blindText(part, gaining(1))).toContain('| **all (primary)** | 1 of 2 | 0 | 0.00 [0.00, 0.00] | 0.00 [');
    const early = fakeResults(part, ({ kind, seed }) =>
      kind === 'probe' || seed < 15 ? 0.5 + seed / 1000 : undefined,
    );
    expect(blindText(part, early)).toMatch(/^So far 4 of 10 pairs are complete, so the test decides nothing yet\./);
    expect(isTrusted(part, early)).toBe(false);
    expect(blindFact(part, early, 'area')).toBe('nothing yet');
    const names = ['gains', 'loses', 'found', 'vain', 'lowest', 'highest'];
    expect(names.map((name) => blindFact(part, gaining(4), name))).toEqual([
      ...['1 of 2', '0', '1 of 1', '0 of 1', '1 of 1', '0 of 1'],
    ]);
    expect(() => blindFact(part, gaining(4), 'other')).toThrow('no number other');
    expect(isTrusted(part, gaining(4))).toBe(true);
    expect(isTrusted(part, gaining(1))).toBe(false);
    expect(calibrationText(part, gaining(4))).toContain('| 0.2 to 0.4 | 1 | 1 | 0 | +10.0 |');
    expect(regimesText(part, gaining(4)).split('\n')[2]).toMatch(
      /^\| dose 4 \| 0\.20 \| 4\.00 \| \+10\.0 .* \| gains \|$/,
    );
  });
});

describe('runs that are timed to a success', () => {
  const part: Part = {
    ...fakePart({ doses: [1], variants: ['grpo-at-0.01', 'grpo-at-0.001', 'drmas-at-0.01'] }),
    waiting: { score: 0.9, most: 100, episodes: 64, enough: 9 },
  };
  /** The step at which a run reaches the score: `grpo` never at the high rate, nor with one seed at the low rate. */
  const stepOf = ({ variant: { id }, seed }: Job) =>
    ({ 'grpo-at-0.01': undefined, 'grpo-at-0.001': seed === 11 ? undefined : 40 + seed, 'drmas-at-0.01': 10 })[id];
  const results: Results = {
    of: (job) => {
      const step = stepOf(job);
      const reached = step === undefined ? [] : [{ step, team: 0.9 }];
      const curve = [{ step: 0, team: 0.5 }, ...reached, { step: 100, team: 0.8 }];
      return { ...fakeTrain(job, 0.8), curve };
    },
    isStale: () => false,
  };

  it('have the step of the first evaluation that reaches it, or the most', () => {
    const mean = (100 + 9 * 40 + 12 + 13 + 14 + 15 + 16 + 17 + 18 + 19 + 20) / 10;
    expect(waitingTable(new PartResults(part, results)).split('\n').slice(2)).toEqual([
      '| `grpo-at-0.01` | 0 of 10 | 100 | 100 | 6,400 |',
      `| \`grpo-at-0.001\` | 9 of 10 | ${Math.round(mean)} | 57 | ${Math.round(64 * mean).toLocaleString('en')} |`,
      '| `drmas-at-0.01` | 10 of 10 | 10 | 10 | 640 |',
    ]);
  });

  it('are compared in pairs, each estimator at the rate at which it is soonest', () => {
    expect(soonerTable([new PartResults(part, results)], 'grpo', 'drmas').split('\n')[2]).toBe(
      '| A made-up part | 60 (`grpo-at-0.001`) | 10 (`drmas-at-0.01`) | 6.0 | .002 | yes | slower |',
    );
    const begun: Results = { ...results, of: (job) => (job.seed === 20 ? undefined : results.of(job)) };
    expect(soonerTable([new PartResults(part, begun)], 'grpo', 'drmas')).toBe('nothing yet');
  });

  it('are compared at equal rates by the ratio of their steps, and by how it changes with the rate', () => {
    const rated = {
      ...part,
      variants: ['grpo', 'drmas'].flatMap((id) =>
        [0.001, 0.01].map((learningRate) => ({ id: `${id}-at-${learningRate}`, set: [], learningRate })),
      ),
      baseline: 'grpo-at-0.01',
    };
    const steps: Record<string, number> = {
      'grpo-at-0.001': 60,
      'drmas-at-0.001': 40,
      'grpo-at-0.01': 80,
      'drmas-at-0.01': 10,
    };
    const timed: Results = {
      isStale: () => false,
      of: (job) => {
        const step = (steps[job.variant.id] ?? 0) + (job.seed % 2);
        return {
          ...fakeTrain(job, 0.9),
          curve: [
            { step: 0, team: 0.5 },
            { step, team: 0.9 },
          ],
        };
      },
    };
    const of = new PartResults(rated, timed);
    const [low, high] = ratiosTable([of], 'grpo', 'drmas').split('\n').slice(2);
    expect(low).toMatch(
      /^\| A made-up part \| 0\.001 \| 1\.49 \[1\.4\d, 1\.50\] \| 10 of 10 \| \.002 \| \.0039 \| 10 of 10 \|/,
    );
    expect(high).toMatch(/^\| A made-up part \| 0\.01 \| 7\.68 /);
    expect(ratioSlopeText(of, 'grpo', 'drmas')).toMatch(/^5\.14 \[.*\], 10 pairs, p = \.002$/);
    expect(rateFactorFigure([of], 'grpo', 'drmas').x.names).toContain('0.01');
    const unnamed = new PartResults(part, results);
    expect(ratiosTable([unnamed], 'grpo', 'drmas')).toBe('nothing yet'); // its variants name no rates
  });

  it('leave a curve that falls as runs reach the score', () => {
    const [grpo] = waitingFigure(new PartResults(part, results)).series;
    expect(grpo?.points[0]).toEqual({ x: 0, y: 100 });
    expect(grpo?.points.slice(1, 3)).toEqual([
      { x: 52, y: 100 },
      { x: 52, y: 90 },
    ]);
    expect(grpo?.points.at(-1)).toEqual({ x: 100, y: 10 });
  });
});
