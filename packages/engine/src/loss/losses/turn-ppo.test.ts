import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LossSpec } from '../loss-spec.js';
import { policyLoss } from '../policy-loss.js';

const clips = { clip: 0.2, aggregate: 'seq-mean-token-mean' } as const;

/** A row of tokens with these ratios; 0 stands for a token that the policy did not write. */
function rowOf(ratios: readonly number[], advantages: readonly number[]) {
  return {
    logprobs: [ratios.map((ratio) => (ratio === 0 ? -9 : Math.log(ratio) - 2))],
    behaviourLogprobs: [ratios.map(() => -2)],
    advantages: [advantages],
    mask: [ratios.map((ratio) => (ratio === 0 ? 0 : 1))],
  };
}

describe('turn-ppo', () => {
  it('takes the geometric mean of each turn and clips turns, not tokens', () => {
    // The turns' ratios are sqrt(2 · 0.5) = 1, kept, and 1.5, clipped at 1.2.
    const input = rowOf([2, 0.5, 0, 1.5], [1, 1, 0, 2]);
    const { loss, gradient, metrics } = policyLoss(input, { type: 'turn-ppo', ...clips });
    expect(loss).toBeCloseTo(-(1 + 1 + 1.2 * 2) / 3, 12);
    expect(gradient[0]?.map((slope) => slope * 3)).toEqual([expect.closeTo(-1), expect.closeTo(-1), 0, 0]);
    expect(metrics.clipFraction).toBe(1 / 2);
  });

  it('is gspo where the row is one turn, and ppo-clip where every turn is one token', () => {
    const numbers = fc.array(fc.tuple(fc.double({ min: 0.5, max: 2, noNaN: true }), fc.integer({ min: -2, max: 2 })), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(numbers, (tokens) => {
        const whole = rowOf(
          tokens.map(([ratio]) => ratio),
          tokens.map(([, advantage]) => advantage),
        );
        const spec: LossSpec = { type: 'turn-ppo', ...clips };
        expect(policyLoss(whole, spec)).toEqual(policyLoss(whole, { type: 'gspo', clipLow: 0.2, clipHigh: 0.2 }));
        const apart = rowOf(
          tokens.flatMap(([ratio]) => [0, ratio]),
          tokens.flatMap(([, advantage]) => [0, advantage]),
        );
        const [turns, single] = [policyLoss(apart, spec), policyLoss(apart, { type: 'ppo-clip', ...clips })];
        expect(turns.loss).toBeCloseTo(single.loss, 12);
        turns.gradient[0]?.forEach((slope, t) => {
          expect(slope).toBeCloseTo(single.gradient[0]?.[t] ?? Number.NaN, 12);
        });
        expect(turns.metrics).toEqual(single.metrics);
      }),
    );
  });
});

describe('s-ppo and st-ppo', () => {
  const pairs = [
    ['s-ppo', 'ppo-clip'],
    ['st-ppo', 'turn-ppo'],
  ] as const;

  it.each(pairs)('%s divides %s by 1 + the mean of |ratio x advantage| that was clipped', (damped, plain) => {
    // Clipping removes 1.5 · 2 from three tokens, and 0.5 · |-1| from one token of the second row.
    const rows = [rowOf([1, 0, 1.5, 0, 1], [1, 0, 2, 0, -1]), rowOf([0.5], [-1])];
    const input = {
      logprobs: rows.flatMap((row) => row.logprobs),
      behaviourLogprobs: rows.flatMap((row) => row.behaviourLogprobs),
      advantages: rows.flatMap((row) => row.advantages),
      mask: rows.flatMap((row) => row.mask),
    };
    for (const [aggregate, bias] of [
      ['seq-mean-token-mean', ((1.5 * 2) / 3 + 0.5) / 2],
      ['token-mean', (1.5 * 2 + 0.5) / 4],
    ] as const) {
      const [held, free] = [damped, plain].map((type) => policyLoss(input, { type, clip: 0.2, aggregate }));
      expect(held?.metrics.clippingBias).toBeCloseTo(bias, 12);
      expect(free?.metrics).not.toHaveProperty('clippingBias');
      expect(held?.loss).toBeCloseTo((free?.loss ?? 0) / (1 + bias), 12);
      held?.gradient.forEach((row, r) => {
        row.forEach((slope, t) => {
          expect(slope).toBeCloseTo((free?.gradient[r]?.[t] ?? Number.NaN) / (1 + bias), 12);
        });
      });
    }
  });

  it.each(pairs)('%s is %s where nothing is clipped', (damped, plain) => {
    const input = rowOf([1, 1.1, 0, 0.9], [1, -1, 0, 2]);
    const [held, free] = [policyLoss(input, { type: damped, ...clips }), policyLoss(input, { type: plain, ...clips })];
    expect(held).toEqual({ ...free, metrics: { ...free.metrics, clippingBias: 0 } });
  });
});
