import { describe, expect, it } from 'vitest';
import { golden, goldensMissing } from '../../test/goldens.js';
import { filterGroups } from './filter.js';

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

  it.skipIf(goldensMissing)('agrees with the original (needs ../shared/goldens)', () => {
    type Case = { params: { groupSize: number; lastTry: boolean }; rewards: number[]; keptIndices: number[] };
    for (const { params, rewards, keptIndices } of golden<{ cases: Case[] }>('advantages/filter_groups.json').cases) {
      expect(filterGroups(rewards, params)).toEqual(keptIndices);
    }
  });
});
