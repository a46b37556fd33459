import { describe, expect, it } from 'vitest';
import { columnOf, countKinds, groupOutcomes } from './outcome-groups.js';

describe('groups by outcome', () => {
  const kindOf = (turns: readonly { outcome: number; earned?: number; penalty?: number; agent?: string }[]) => {
    const agentOf = ({ agent = '' }) => agent;
    const [group] = groupOutcomes(1, {
      outcome: columnOf([turns], ({ outcome }) => outcome),
      earned: columnOf([turns], ({ outcome, earned = outcome }) => earned, agentOf),
      reward: columnOf([turns], ({ outcome, earned = outcome, penalty = 0 }) => earned - penalty, agentOf),
    });
    return group;
  };

  it('are divided by the first thing that differs', () => {
    expect(kindOf([{ outcome: 1 }, { outcome: 0, penalty: 1 }])).toEqual({ kind: 'mixed', right: true });
    expect(kindOf([{ outcome: 0, earned: 1 }, { outcome: 0 }])).toEqual({ kind: 'ownRewardsOnly', right: false });
    expect(kindOf([{ outcome: 0 }, { outcome: 0, penalty: 0.1 }])).toEqual({ kind: 'penaltiesOnly', right: false });
    expect(kindOf([{ outcome: 1 }, { outcome: 1 }])).toEqual({ kind: 'nothing', right: true });
    expect(kindOf([])).toEqual({ kind: 'nothing', right: false });
  });

  it('compare rewards only among peers', () => {
    const apart = [
      { outcome: 1, earned: 2, agent: 'solver' },
      { outcome: 1, earned: 3, agent: 'critic' },
    ];
    expect(kindOf(apart)?.kind).toBe('nothing');
    expect(kindOf(apart.map((turn) => ({ ...turn, agent: 'solver' })))?.kind).toBe('ownRewardsOnly');
  });

  it('are right only if every member succeeds, if success is known', () => {
    const groups = [[0.2, 0.2], [1, 1], [0.2], []];
    const successes = [[0, 0], [1, 0.5], [0.4], []];
    const outcome = columnOf(groups, (value) => value);
    const success = columnOf(successes, (value) => value);
    const outcomes = groupOutcomes(groups.length, { outcome, success, reward: outcome });
    expect(outcomes.map(({ right }) => right)).toEqual([false, true, false, false]);
  });

  it('ignore differences by rounding, and count once as right or wrong unless they are mixed', () => {
    const groups = [[0.1 + 0.2, 0.3], [0, 0], [1, 0], [1]];
    const column = columnOf(groups, (outcome) => outcome);
    const counts = countKinds(groupOutcomes(groups.length, { outcome: column, reward: column }));
    expect(counts).toEqual({ allRight: 2, allWrong: 1, mixed: 1, ownRewardsOnly: 0, penaltiesOnly: 0, nothing: 3 });
  });
});
