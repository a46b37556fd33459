import { klOfRatio, lossNamed, type PolicyLossInput, policyLoss } from '@drmas/engine/loss';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ktoLoss } from './kto.js';

const spec = lossNamed({ type: 'kto', beta: 0.5, desirable: 1, undesirable: 2 }, [ktoLoss]);
const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

/** Rows of tokens with these log ratios, each row with one advantage. */
const rowsOf = (rows: readonly (readonly [logRatios: readonly number[], advantage: number])[]): PolicyLossInput => ({
  logprobs: rows.map(([logRatios]) => logRatios.map((logRatio) => logRatio - 2)),
  behaviourLogprobs: rows.map(([logRatios]) => logRatios.map(() => -2)),
  advantages: rows.map(([logRatios, advantage]) => logRatios.map(() => advantage)),
  mask: rows.map(([logRatios]) => logRatios.map(() => 1)),
});

const logRatio = fc.double({ min: -1, max: 1, noNaN: true });
const batches = fc.array(
  fc.tuple(fc.array(logRatio, { minLength: 1, maxLength: 4 }), fc.constantFrom(-2, -1, 0, 0.5, 1)),
  { minLength: 1, maxLength: 5 },
);

describe('kto', () => {
  it('is what a pencil makes of it', () => {
    // Log ratios of the responses: 0.3 - 0.1 = 0.2 and -0.4. The third has no advantage and counts only in the KL.
    const input = rowsOf([[[0.3, -0.1], 1], [[-0.4], -3], [[0.5], 0]]); // biome-ignore format: a row a response
    const z = (klOfRatio(0.2) + klOfRatio(-0.4) + klOfRatio(0.5)) / 3;
    const [good, bad] = [sigmoid(0.5 * (0.2 - z)), sigmoid(0.5 * (z + 0.4))];
    const { loss, gradient, metrics } = policyLoss(input, spec);
    expect(metrics.klBaseline).toBeCloseTo(z, 12);
    expect(loss).toBeCloseTo((1 - good + 2 * 3 * (1 - bad)) / 3, 12);
    const slope = (-0.5 * good * (1 - good)) / 3;
    expect(gradient[0]?.map((each) => each / slope)).toEqual([expect.closeTo(1, 12), expect.closeTo(1, 12)]);
    expect(gradient[1]?.[0]).toBeCloseTo((2 * 3 * 0.5 * bad * (1 - bad)) / 3, 12);
    expect(gradient[2]).toEqual([0]);
  });

  it('is a quarter of beta of the policy gradient on policy', () => {
    fc.assert(
      fc.property(batches, (rows) => {
        const input = rowsOf(rows.map(([tokens, advantage]) => [tokens.map(() => 0), advantage]));
        const even = lossNamed({ type: 'kto', beta: 0.5, desirable: 1, undesirable: 1 }, [ktoLoss]);
        const plain = policyLoss(input, { type: 'ppo-clip', clip: 0.2, aggregate: 'seq-mean-token-sum' });
        const { gradient, metrics } = policyLoss(input, even);
        expect(metrics.klBaseline).toBe(0);
        gradient.flat().forEach((slope, t) => {
          expect(slope).toBeCloseTo((0.5 / 4) * (plain.gradient.flat()[t] as number), 12);
        });
      }),
    );
  });

  it('wants more of what was desirable and less of what was not, the less the further it has come', () => {
    const slopeAt = (at: number, advantage: number) =>
      policyLoss(rowsOf([[[at], advantage]]), spec, { klBaseline: 0 }).gradient[0]?.[0] as number;
    for (const at of [-3, -1, 0, 1, 3]) {
      expect(slopeAt(at, 1)).toBeLessThan(0);
      expect(slopeAt(at, -1)).toBeGreaterThan(0);
      expect(slopeAt(at, 1)).toBeCloseTo(slopeAt(-at, 1), 12);
    }
    for (const advantage of [1, -1])
      expect(Math.abs(slopeAt(3, advantage))).toBeLessThan(Math.abs(slopeAt(1, advantage)));
  });

  it('adds up over parts that share a normalizer and the KL', () => {
    fc.assert(
      fc.property(batches, (rows) => {
        const whole = policyLoss(rowsOf(rows), spec);
        const options = { normalizer: rows.length, klBaseline: whole.metrics.klBaseline ?? Number.NaN };
        const parts = rows.map((row) => policyLoss(rowsOf([row]), spec, options));
        expect(parts.reduce((sum, { loss }) => sum + loss, 0)).toBeCloseTo(whole.loss, 12);
        expect(parts.flatMap(({ gradient }) => gradient)).toEqual(whole.gradient);
      }),
    );
  });

  it('stays finite however far a response has moved', () => {
    const input = rowsOf([[[900], 1], [[-900], 1], [[900], -1], [[-900], -1]]); // biome-ignore format: four corners
    const { loss, gradient } = policyLoss(input, spec);
    for (const number of [loss, ...gradient.flat()]) expect(Number.isFinite(number)).toBe(true);
  });
});

describe('the KL of a ratio', () => {
  it('is the divergence on average over what the old policy writes, and never negative', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 4, maxLength: 4 }); // far from the bound
    fc.assert(
      fc.property(weights, weights, (ofOld, ofNew) => {
        const share = (all: readonly number[]) => all.map((one) => one / all.reduce((sum, each) => sum + each, 0));
        const [old, now] = [share(ofOld), share(ofNew)];
        const logRatios = old.map((q, i) => Math.log((now[i] as number) / q));
        const mean = old.reduce((sum, q, i) => sum + q * klOfRatio(logRatios[i] as number), 0);
        expect(mean).toBeCloseTo(
          now.reduce((sum, p, i) => sum + p * (logRatios[i] as number), 0),
          10,
        );
        for (const each of logRatios) expect(klOfRatio(each)).toBeGreaterThanOrEqual(-1e-12);
      }),
    );
    expect([klOfRatio(0), klOfRatio(50), klOfRatio(-900), klOfRatio(Number.NEGATIVE_INFINITY)]).toEqual([0, 10, 1, 1]);
  });
});
