import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decayAfterRise, decayFromStart, type LearningRateSettings, learningRateAt } from './mini-batches.js';

/** The rates of the first updates. */
function rates(rest: Omit<LearningRateSettings, 'learningRate'>, total: number, count = total): number[] {
  const settings = { learningRate: 8, ...rest };
  const decay = decayAfterRise(settings, total);
  return Array.from({ length: count }, (_, i) => learningRateAt(settings, i + 1, decay));
}

describe('the learning rate', () => {
  it('rises and stays constant', () => {
    expect(rates({ warmupSteps: 4, schedule: { type: 'constant' } }, 6)).toEqual([2, 4, 6, 8, 8, 8]);
    expect(rates({ warmupSteps: 0, schedule: { type: 'constant' } }, 3)).toEqual([8, 8, 8]);
  });

  it('falls in a line to its final fraction', () => {
    expect(rates({ warmupSteps: 0, schedule: { type: 'linear', finalFraction: 0 } }, 5)).toEqual([8, 6, 4, 2, 0]);
    expect(rates({ warmupSteps: 2, schedule: { type: 'linear', finalFraction: 0.5 } }, 6)).toEqual([4, 8, 7, 6, 5, 4]);
  });

  it('falls along a cosine', () => {
    const falling = rates({ warmupSteps: 1, schedule: { type: 'cosine', finalFraction: 0.25 } }, 5);
    [8, 5 + 3 * Math.SQRT1_2, 5, 5 - 3 * Math.SQRT1_2, 2].forEach((rate, i) => {
      expect(falling[i]).toBeCloseTo(rate, 12);
    });
  });

  it('of a warm start falls from its first update on, while it still rises', () => {
    const settings = { learningRate: 8, warmupSteps: 2, schedule: { type: 'cosine', finalFraction: 0.25 } } as const;
    const all = [1, 2, 3, 4].map((update) => learningRateAt(settings, update, decayFromStart(4)));
    [4, 5 + 3 * Math.SQRT1_2, 5, 5 - 3 * Math.SQRT1_2].forEach((rate, i) => {
      expect(all[i]).toBeCloseTo(rate, 12);
    });
  });

  it('ends at a chosen update, and stays constant after it', () => {
    const schedule = { type: 'linear', finalFraction: 0.25, updates: 3 } as const;
    expect(rates({ warmupSteps: 0, schedule }, 100, 5)).toEqual([8, 5, 2, 2, 2]);
  });

  it('is never above the whole rate or below its final fraction, and only falls after the warm-up', () => {
    const property = fc.property(
      fc.constantFrom('linear' as const, 'cosine' as const),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 1, max: 30 }),
      (type, finalFraction, warmupSteps, total) => {
        const all = rates({ warmupSteps, schedule: { type, finalFraction } }, total, total + 5);
        all.forEach((rate, i) => {
          expect(rate).toBeLessThanOrEqual(8);
          if (i >= Math.max(1, warmupSteps)) {
            expect(rate).toBeLessThanOrEqual((all[i - 1] as number) + 1e-12);
            expect(rate).toBeGreaterThanOrEqual(8 * finalFraction - 1e-12);
          }
        });
        if (warmupSteps < total && total > 1) expect(all[total - 1]).toBeCloseTo(8 * finalFraction, 10);
      },
    );
    fc.assert(property);
  });
});
