import { describe, expect, it } from 'vitest';
import type { TurnRecord } from '../../base/core/advantage.js';
import { estimateAdvantages } from '../../runs/composition/estimate-advantages.js';
import type { Estimator } from './estimators/index.js';

const turns: TurnRecord[] = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => ({
  task: `t${i >> 2}`,
  episode: `${i >> 1}`,
  agent: i % 2 === 0 ? 'solver' : 'verifier',
  turn: i % 2,
  reward: (i * 7) % 5,
  outcome: 1,
  length: 2,
  tokenRewards: [0.25 * i, -0.5 * (i % 3)],
}));
/** The same turns, with their rewards at once instead of by token. */
const paid = turns.map(({ tokenRewards = [], ...turn }) => ({
  ...turn,
  reward: tokenRewards.reduce((sum, each) => sum + each, turn.reward),
}));
const unpaid = turns.map(({ tokenRewards: _, ...turn }) => turn);

describe('rewards of tokens', () => {
  it.each<Estimator>([
    { type: 'drmas' },
    { type: 'drmas', spread: 'none' },
    { type: 'grpo' },
    { type: 'grpo', episodeScore: 'outcome+penalties' },
    { type: 'rloo', byAgent: true },
    { type: 'reinforce++-baseline' },
    { type: 'grpo-passk' },
  ])('are part of the turn reward if turns are compared: %j', (estimator) => {
    expect(estimateAdvantages(turns, estimator)).toEqual(estimateAdvantages(paid, estimator));
    expect(estimateAdvantages(turns, estimator)).not.toEqual(estimateAdvantages(unpaid, estimator));
  });

  it('are not part of the outcome', () => {
    const estimator = { type: 'grpo', episodeScore: 'outcome' } as const;
    expect(estimateAdvantages(turns, estimator)).toEqual(estimateAdvantages(unpaid, estimator));
  });
});
