import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mean, meansByKey, median, standardDeviation } from './statistics.js';

describe('statistics', () => {
  it('has known values', () => {
    expect(mean([1, 2, 3, 6])).toBe(3);
    expect(standardDeviation([2, 4, 4, 4, 5, 5, 7, 9])).toBeCloseTo(Math.sqrt(32 / 7), 14);
    expect(median([5, 1, 3])).toBe(3);
    expect(median([10, 9, 2, 1])).toBe(5.5);
  });

  it('is 0 for an empty list', () => {
    expect([mean([]), standardDeviation([]), standardDeviation([7]), median([])]).toEqual([0, 0, 0, 0]);
  });

  it('has the mean of each key over the records that have it, also of a name that each object has', () => {
    expect(meansByKey([{ toString: 2, a: 1 }, { a: 3, valueOf: 4 }, {}])).toEqual({ a: 2, toString: 2, valueOf: 4 });
  });

  it('leaves its input alone and sorts numbers as numbers', () => {
    const values = [10, 9, 100];
    expect(median(values)).toBe(10);
    expect(values).toEqual([10, 9, 100]);
  });

  it('moves and scales with the data', () => {
    const data = fc.array(fc.double({ min: -100, max: 100, noNaN: true }), { minLength: 2, maxLength: 30 });
    fc.assert(
      fc.property(data, fc.double({ min: -50, max: 50, noNaN: true }), (values, shift) => {
        const moved = values.map((v) => -2 * v + shift);
        expect(mean(moved)).toBeCloseTo(-2 * mean(values) + shift, 9);
        expect(median(moved)).toBeCloseTo(-2 * median(values) + shift, 9);
        expect(standardDeviation(moved)).toBeCloseTo(2 * standardDeviation(values), 9);
      }),
    );
  });
});
