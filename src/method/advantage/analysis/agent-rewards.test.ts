import { describe, expect, it } from 'vitest';
import { TurnBatch } from '../turn-batch.js';
import { agentRewards } from './agent-rewards.js';

const turnOf = (agent: string, reward: number, task = 'a', episode = 'e0') => ({
  task,
  episode,
  agent,
  turn: 0,
  reward,
});

describe('the rewards of an agent', () => {
  it('are averaged over its turns; the spread within tasks ignores differences between tasks', () => {
    const batch = new TurnBatch([
      turnOf('solver', 1),
      turnOf('critic', 5),
      turnOf('solver', 0, 'a', 'e1'),
      turnOf('solver', 3, 'b'),
      turnOf('solver', 3, 'b', 'e1'),
    ]);
    const { solver, critic } = agentRewards(batch);
    expect(solver).toMatchObject({ turns: 4, callsPerEpisode: 1, rewardMean: 7 / 4, rewardStd: 1.5 });
    expect(solver?.groupSpread).toBeCloseTo(Math.SQRT1_2 / 2, 12);
    expect(critic).toEqual({ turns: 1, callsPerEpisode: 1 / 4, rewardMean: 5, rewardStd: 0, groupSpread: 0 });
    expect(agentRewards(batch, 8).solver?.callsPerEpisode).toBe(0.5);
    expect(agentRewards(new TurnBatch([]))).toEqual({});
  });
});
