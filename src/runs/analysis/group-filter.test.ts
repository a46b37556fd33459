import { expect, it } from 'vitest';
import { candidatesOf } from './group-filter.js';
import type { GroupQuery } from './shown-episode.js';

it('calls a group mixed as the events of steps do: rewards that differ by rounding are equal', () => {
  const kindsOf = (...rewards: number[]) => {
    const episodes = rewards.map((reward, sample) => ({ sample, reward, failed: false, agents: [], invalid: [] }));
    const candidates = (kind: GroupQuery['kind']) =>
      candidatesOf({ task: 't', title: 't', episodes }, { file: '', kind, agent: '', text: '', low: null, high: null });
    return [candidates('mixed').length, candidates('all equal').length];
  };
  expect(kindsOf(0.1 + 0.2, 0.3)).toEqual([0, 2]);
  expect(kindsOf(0.3, 0.31)).toEqual([2, 0]);
});
