import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linearScale, scaleFor } from './scale.js';

const value = fc
  .double({ min: -1e9, max: 1e9, noNaN: true })
  .filter((number) => number === 0 || Math.abs(number) > 1e-9);

describe('a linear scale', () => {
  it('holds its values, in order, between few round ticks', () => {
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        fc.pre(high - low > 1e-6 * Math.max(Math.abs(low), Math.abs(high), 1e-6));
        const scale = linearScale(low, high);
        expect(scale.place(low)).toBeGreaterThanOrEqual(-1e-6);
        expect(scale.place(high)).toBeLessThanOrEqual(1 + 1e-6);
        expect(scale.place(low)).toBeLessThan(scale.place(high));
        expect(scale.ticks.length).toBeGreaterThanOrEqual(2);
        expect(scale.ticks.length).toBeLessThanOrEqual(8);
      }),
    );
  });
  it('of equal values, or none, still has a range', () => {
    for (const scale of [linearScale(3, 3), scaleFor([]), scaleFor([0])]) {
      expect(scale.ticks.length).toBeGreaterThan(1);
      for (const tick of scale.ticks) expect(Number.isFinite(scale.place(tick))).toBe(true);
    }
  });
});
