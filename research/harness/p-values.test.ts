import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { holm } from './p-values.js';

describe('holm', () => {
  it('gives the values of a worked example', () => {
    expect(holm([0.01, 0.04, 0.03, 0.005])).toEqual([0.03, 0.06, 0.06, 0.02].map((p) => expect.closeTo(p, 12)));
    expect(holm([0.6, 0.7])).toEqual([1, 1]);
  });

  it('keeps the order of the values, and lowers none', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true })), (ps) => {
        const adjusted = holm(ps);
        ps.forEach((p, i) => {
          expect(adjusted[i]).toBeGreaterThanOrEqual(p);
          ps.forEach((other, j) => {
            if (p < other) expect(adjusted[i]).toBeLessThanOrEqual(adjusted[j] as number);
          });
        });
      }),
    );
  });
});
