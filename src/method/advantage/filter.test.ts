import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { golden } from '../../../test/goldens.js';
import { filterGroups, keptGroups } from './filter.js';

describe('filterGroups', () => {
  it('keeps whole groups with more than one outcome', () => {
    expect(filterGroups([1, 1, 0, 1, 0, 0], { groupSize: 2 })).toEqual([2, 3]);
    expect(filterGroups([1, 1, 0, 0], { groupSize: 2, lastTry: true })).toEqual([0, 1, 2, 3]);
    expect(filterGroups([], { groupSize: 8 })).toEqual([]);
  });

  it('refuses groups that are not whole', () => {
    expect(() => filterGroups([1, 0, 1], { groupSize: 2 })).toThrow('3 rewards are not whole groups of 2');
    expect(() => filterGroups([1], { groupSize: 0 })).toThrow('whole groups');
  });

  it('treats differences by rounding as equal', () => {
    expect(filterGroups([0.1 + 0.2, 0.3], { groupSize: 2 })).toEqual([]);
  });

  it('agrees with the original', () => {
    type Case = { params: { groupSize: number; lastTry: boolean }; rewards: number[]; keptIndices: number[] };
    for (const { params, rewards, keptIndices } of golden<{ cases: Case[] }>('advantages/filter_groups').cases) {
      expect(filterGroups(rewards, params)).toEqual(keptIndices);
    }
  });
});

describe('keptGroups', () => {
  const variance = (keep: number) => ({ type: 'variance', keep }) as const;
  const some = fc.array(fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 1, maxLength: 5 }), { minLength: 1 });

  it('variance: the widest groups, in their order; of equal ones the earlier', () => {
    const groups = [
      [0, 0],
      [0, 1],
      [0, 5],
      [1, 1],
      [3, 4, 3, 4],
    ];
    expect(keptGroups(groups, variance(0.4))).toEqual([1, 2]);
    expect(keptGroups(groups, variance(0.6))).toEqual([1, 2, 4]);
    expect(
      keptGroups(
        [
          [1, 1],
          [2, 2],
          [3, 3],
        ],
        variance(0.5),
      ),
    ).toEqual([0]);
  });

  it('variance: keeps the given number, and prefers groups that differ', () => {
    fc.assert(
      fc.property(some, fc.double({ min: 0.01, max: 0.99, noNaN: true }), (groups, keep) => {
        const kept = keptGroups(groups, variance(keep));
        expect(kept.length).toBe(Math.max(1, Math.floor(keep * groups.length + 1e-9)));
        expect(kept).toEqual([...kept].sort((a, b) => a - b));
        // A group without a spread stays only if too few groups have one.
        const flat = (position: number) => new Set(groups[position]).size === 1;
        if (kept.some(flat)) expect(groups.filter((_, i) => !flat(i)).length).toBeLessThan(kept.length);
      }),
    );
  });

  it('neither filter depends on a shift, a positive scale or the order of siblings', () => {
    fc.assert(
      fc.property(some, fc.integer({ min: -9, max: 9 }), fc.constantFrom(0.5, 2, 4), (groups, shift, scale) => {
        const changed = groups.map((group) => group.map((score) => score * scale + shift).reverse());
        expect(keptGroups(changed, { type: 'equal-outcomes' })).toEqual(keptGroups(groups, { type: 'equal-outcomes' }));
      }),
    );
  });

  it('groups of one have nothing to compare; an empty list is no error', () => {
    expect(keptGroups([[1], [0, 1], []], { type: 'equal-outcomes' })).toEqual([1]);
    expect(keptGroups([], variance(0.5))).toEqual([]);
  });
});
