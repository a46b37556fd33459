import { describe, expect, it } from 'vitest';
import { TurnBatch } from '../turn-batch.js';
import { advantageSizes, magnitude } from './advantage-sizes.js';

const turnOf = (agent: string) => ({ task: 'a', episode: 'e0', agent, turn: 0, reward: 1 });

describe('the sizes of advantages', () => {
  it('are computed for each agent, by the largest token of a turn', () => {
    const batch = new TurnBatch([turnOf('solver'), turnOf('critic'), turnOf('solver')]);
    expect(advantageSizes(batch, [[1, -3], 2, 0])).toEqual({
      solver: { meanAbs: 1.5, maxAbs: 3, zero: 0.5, secondMoment: 4.5 },
      critic: { meanAbs: 2, maxAbs: 2, zero: 0, secondMoment: 4 },
    });
  });

  it('the magnitude of an advantage is its largest absolute value', () => {
    expect([magnitude(-2), magnitude(1), magnitude([0.5, -3, 1]), magnitude([])]).toEqual([2, 1, 3, 0]);
  });
});
