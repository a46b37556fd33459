import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { signFlipP } from './sign-flips.js';

describe('signFlipP', () => {
  const differences = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 1, maxLength: 8 });

  it('gives known values', () => {
    expect(signFlipP([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).toBe(2 / 1024); // all of one sign: the smallest possible
    expect(signFlipP([1, -1])).toBe(1);
    expect(signFlipP([0, 0, 0])).toBe(1);
    expect(signFlipP([3, 2, -1])).toBe(4 / 8); // |sum| >= 4: +++, ++-, and their opposites
    expect(signFlipP([])).toBe(1);
  });

  it('does not depend on the sign, the scale or the order', () => {
    fc.assert(
      fc.property(differences, fc.double({ min: 0.1, max: 10, noNaN: true }), (values, scale) => {
        const p = signFlipP(values);
        expect(p).toBeGreaterThanOrEqual(2 ** (1 - values.length) - 1e-12);
        expect(p).toBeLessThanOrEqual(1);
        expect(signFlipP(values.map((value) => -scale * value).reverse())).toBeCloseTo(p, 9);
      }),
    );
  });

  it('counts as many assignments as an enumeration of all', () => {
    // Multiples of a quarter, so that many sums are equal.
    const steps = fc.array(
      fc.integer({ min: -6, max: 6 }).map((step) => step / 4),
      { minLength: 1, maxLength: 9 },
    );
    fc.assert(
      fc.property(steps, (values) => {
        const all = values.reduce((sums, value) => sums.flatMap((sum) => [sum + value, sum - value]), [0]);
        const observed = Math.abs(values.reduce((sum, value) => sum + value, 0));
        expect(signFlipP(values)).toBe(all.filter((sum) => Math.abs(sum) >= observed).length / all.length);
      }),
    );
  });

  it('takes up to 40 pairs', () => {
    expect(signFlipP(new Array(40).fill(1))).toBe(2 / 2 ** 40);
    expect(() => signFlipP(new Array(41).fill(1))).toThrow(/at most 40 pairs, got 41/);
  });
});
