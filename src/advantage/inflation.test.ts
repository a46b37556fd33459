import { describe, expect, it } from 'vitest';
import type { TurnRecord } from '../core/advantage.js';
import { type Estimator, openEstimator } from './estimators/index.js';
import { predictedInflation } from './inflation.js';
import { TurnBatch } from './turn-batch.js';

const inflation = (turns: readonly TurnRecord[], estimator: Estimator) =>
  predictedInflation(new TurnBatch(turns), openEstimator(estimator));

const turnOf = (episode: string, agent: string, turn: number, reward: number, task = 'a'): TurnRecord => ({
  task,
  episode,
  agent,
  turn,
  reward,
});

/** Four episodes that earn 1, 1, 0, 0; the searcher is called once in the good ones and three times in the bad ones. */
const uneven = [1, 1, 0, 0].flatMap((reward, e) => [
  turnOf(`e${e}`, 'answerer', 0, reward),
  ...Array.from({ length: reward === 1 ? 1 : 3 }, (_, s) => turnOf(`e${e}`, 'searcher', s + 1, reward)),
]);

describe('predictedInflation', () => {
  it('is the factor of Lemma 4.2', () => {
    // Episodes: mu = 1/2, sigma² = 1/3. Searcher: eight turns, two of them 1: mu_k = 1/4, sigma_k² = 3/14.
    const { answerer, searcher } = inflation(uneven, { type: 'drmas' });
    expect(answerer).toBeCloseTo(1, 12);
    expect(searcher).toBeCloseTo((3 / 14 + 1 / 16) / (1 / 3), 12);
  });

  it('takes the statistics that the estimator in use shares', () => {
    // All twelve turns: four 1s, so mu = 1/3 and sigma² = 8/33.
    const { answerer, searcher } = inflation(uneven, { type: 'grpo-turn' });
    expect(answerer).toBeCloseTo((1 / 3 + 1 / 36) / (8 / 33), 12);
    expect(searcher).toBeCloseTo((3 / 14 + 1 / 144) / (8 / 33), 12);
    const byTurns = { type: 'partition', score: 'turn', mean: 'agent', spread: 'agent', unit: 'turn' } as const;
    expect(inflation(uneven, byTurns)).toEqual(inflation(uneven, { type: 'grpo-turn' }));
    expect(inflation(uneven, { type: 'gae' })).toEqual(inflation(uneven, { type: 'grpo' }));
  });

  it('averages over turns of judgeable groups and leaves out agents that have none', () => {
    const flat = ['e0', 'e1'].flatMap((episode) => [
      turnOf(episode, 'answerer', 0, 1, 'flat'),
      turnOf(episode, 'critic', 1, 1, 'flat'),
    ]);
    expect(inflation([...uneven, ...flat], { type: 'grpo' })).toEqual(inflation(uneven, { type: 'grpo' }));
    expect(inflation(flat, { type: 'drmas' })).toEqual({});
    expect(inflation([], { type: 'drmas' })).toEqual({});
  });
});
