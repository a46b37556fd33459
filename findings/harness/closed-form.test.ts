import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../src/base/core/random.js';
import { estimateStep } from '../../src/method/advantage/estimate.js';
import { rareCallerInflation } from './closed-form.js';

describe('the inflation of an agent that some episodes call', () => {
  it.each([
    { called: 0.08, all: 0.77, groupSize: 16, share: 0.25 },
    { called: 0.125, all: 0.91, groupSize: 16, share: 0.1 },
    { called: 0.35, all: 0.21, groupSize: 5, share: 0.6 },
    { called: 0.5, all: 0.15, groupSize: 5, share: 0.3 },
  ])('is what the estimator predicts on played groups: $called of the called, $all of all', (caller) => {
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
