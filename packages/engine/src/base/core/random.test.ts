import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestOfIds, permutation, philox, RandomStream, randomKey, uniformAt } from './random.js';

describe('philox', () => {
  it('gives the known answers of Philox4x32-10', () => {
    const ones = 0xffffffff;
    expect(philox([0, 0, 0, 0], [0, 0])).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    expect(philox([ones, ones, ones, ones], [ones, ones])).toEqual([0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
    const digitsOfPi = philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]);
    expect(digitsOfPi).toEqual([0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
  });
});

describe('digestOfIds', () => {
  it('is equal for equal lists and differs for all others', () => {
    const ids = fc.array(fc.nat({ max: 3 }), { maxLength: 4 });
    fc.assert(
      fc.property(ids, ids, (a, b) => {
        expect(digestOfIds(a).join() === digestOfIds(b).join()).toBe(a.join() === b.join());
      }),
      { seed: 1 },
    );
    expect(digestOfIds([1, 0])).not.toEqual(digestOfIds([1]));
    expect(digestOfIds(Array.from({ length: 300_000 }, (_, i) => i))).toHaveLength(2);
  });
});

describe('randomKey', () => {
  const part = fc.oneof(fc.string({ maxLength: 6 }), fc.integer(), fc.double({ noNaN: true }));

  it('differs for different lists of parts, however they are split', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), fc.array(part, { maxLength: 4 }), (a, b) => {
        const same = a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
        expect(randomKey(...a).join() === randomKey(...b).join()).toBe(same);
      }),
    );
    expect(randomKey('ab', 'c')).not.toEqual(randomKey('a', 'bc'));
    expect(randomKey('1')).not.toEqual(randomKey(1));
    expect(randomKey(1, 2)).not.toEqual(randomKey(2, 1));
  });
});

describe('uniformAt', () => {
  it('is a pure function in [0, 1), spread evenly, and exact in float32', () => {
    const key = randomKey('uniform');
    const draws = Array.from({ length: 20_000 }, (_, i) => uniformAt(key, i));
    expect(draws.map((_, i) => uniformAt(key, i))).toEqual(draws);
    const buckets = new Array<number>(20).fill(0);
    expect(draws.filter((u) => !(u >= 0 && u < 1 && Math.fround(u) === u))).toEqual([]);
    for (const u of draws) {
      const bucket = Math.floor(u * 20);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    const chiSquare = buckets.reduce((sum, n) => sum + (n - 1000) ** 2 / 1000, 0);
    expect(chiSquare).toBeLessThan(43.8); // the 99.9 % point for 19 degrees of freedom
  });
});

describe('RandomStream', () => {
  it('repeats itself for equal keys and stays in its ranges', () => {
    const a = new RandomStream('stream', 1);
    const b = new RandomStream('stream', 1);
    const drawn = Array.from({ length: 1000 }, () => a.integer(-2, 3));
    expect(Array.from({ length: 1000 }, () => b.integer(-2, 3))).toEqual(drawn);
    expect(new Set(drawn)).toEqual(new Set([-2, -1, 0, 1, 2, 3]));
    const normals = Array.from({ length: 20_000 }, () => a.normal());
    const mean = normals.reduce((sum, x) => sum + x, 0) / normals.length;
    const variance = normals.reduce((sum, x) => sum + (x - mean) ** 2, 0) / normals.length;
    expect(Math.abs(mean)).toBeLessThan(0.03);
    expect(Math.abs(variance - 1)).toBeLessThan(0.05);
  });
});

describe('permutation', () => {
  it('holds every index once and depends on its key', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 200 }), fc.integer(), (n, seed) => {
        expect([...permutation(n, seed)].sort((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i));
      }),
    );
    expect(permutation(50, 'a')).not.toEqual(permutation(50, 'b'));
  });
});
