import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { learningRateAt } from './learning-rate.js';

const rates = (settings: Omit<Parameters<typeof learningRateAt>[0], 'learningRate'>, total: number, count = total) =>
  Array.from({ length: count }, (_, i) => learningRateAt({ learningRate: 8, ...settings }, i + 1, total));

describe('the learning rate', () => {
  it('rises and stays', () => {
    expect(rates({ warmupSteps: 4, schedule: { type: 'constant' } }, 6)).toEqual([2, 4, 6, 8, 8, 8]);
    expect(rates({ warmupSteps: 0, schedule: { type: 'constant' } }, 3)).toEqual([8, 8, 8]);
  });

  it('falls in a line to its final fraction', () => {
    expect(rates({ warmupSteps: 0, schedule: { type: 'linear', finalFraction: 0 } }, 5)).toEqual([8, 6, 4, 2, 0]);
    expect(rates({ warmupSteps: 2, schedule: { type: 'linear', finalFraction: 0.5 } }, 6)).toEqual([4, 8, 7, 6, 5, 4]);
  });

  it('falls along a cosine', () => {
    const own = rates({ warmupSteps: 1, schedule: { type: 'cosine', finalFraction: 0.25 } }, 5);
    [8, 5 + 3 * Math.SQRT1_2, 5, 5 - 3 * Math.SQRT1_2, 2].forEach((rate, i) => {
      expect(own[i]).toBeCloseTo(rate, 12);
    });
  });

  it('has an end of its own, and stays there', () => {
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
        const own = rates({ warmupSteps, schedule: { type, finalFraction } }, total, total + 5);
        own.forEach((rate, i) => {
          expect(rate).toBeLessThanOrEqual(8);
          if (i >= Math.max(1, warmupSteps)) {
            expect(rate).toBeLessThanOrEqual((own[i - 1] as number) + 1e-12);
            expect(rate).toBeGreaterThanOrEqual(8 * finalFraction - 1e-12);
          }
        });
        if (warmupSteps < total && total > 1) expect(own[total - 1]).toBeCloseTo(8 * finalFraction, 10);
      },
    );
    fc.assert(property);
  });
});
