import { RandomStream } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Estimator, openEstimator } from './estimators/index.js';
import { ownShares } from './own-share.js';
import { TurnBatch } from './turn-batch.js';

const shares = (turns: readonly TurnRecord[], estimator: Estimator = { type: 'grpo' }) =>
  ownShares(new TurnBatch(turns), openEstimator(estimator));

/**
 * Tasks of sixteen episodes: a worker in each, an expert in the episodes chosen by `isCalled`, and the rewards of
 * `earns`.
 */
function played(
  tasks: number,
  earns: (random: RandomStream, called: boolean) => { readonly worker: number; readonly expert: number },
  isCalled: (random: RandomStream) => boolean = () => true,
): TurnRecord[] {
  const random = new RandomStream('own share');
  return Array.from({ length: tasks * 16 }, (_, e) => {
    const called = isCalled(random);
    const { worker, expert } = earns(random, called);
    const of = { task: `t${Math.floor(e / 16)}`, episode: `e${e}` };
    const turns = [{ ...of, agent: 'worker', turn: 0, reward: worker }];
    return called ? [...turns, { ...of, agent: 'expert', turn: 1, reward: expert }] : turns;
  }).flat();
}

describe('the share of an agent in its own scores', () => {
  it('is about 1 / (1 + (mu_k - mu)² / sigma_k²) if only the means differ', () => {
    // Called in a quarter of the episodes, right in an eighth of them; all others succeed.
    const turns = played(
      400,
      (random, called) => {
        const right = Number(!called || random.chance(1 / 8));
        return { worker: right, expert: right };
      },
      (random) => random.chance(1 / 4),
    );
    const mu = 1 - (1 / 4) * (7 / 8);
    const expected = 1 / (1 + (1 / 8 - mu) ** 2 / ((1 / 8) * (7 / 8)));
    expect(shares(turns).expert).toBeCloseTo(expected, 1);
    expect(shares(turns).worker).toBeGreaterThan(0.99);
  });

  it('is small if rewards of others drown its own, which inflation does not show', () => {
    const coin = (random: RandomStream) => Number(random.chance(1 / 2));
    const alone = played(40, (random) => ({ worker: coin(random), expert: 0.1 * coin(random) }));
    expect(shares(alone).expert).toBeLessThan(0.05);
    expect(shares(alone).worker).toBeGreaterThan(0.9);
    // The other turns earn nothing, so only the agent's own rewards differ.
    const quiet = played(40, (random) => ({ worker: 0, expert: coin(random) }));
    expect(shares(quiet).expert).toBeGreaterThan(0.99);
  });

  it('is 1 for agents that are called once in every episode and earn the reward of the team', () => {
    const rewards = fc.array(fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 9, maxLength: 9 }), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(rewards, (tasks) => {
        fc.pre(tasks.every((task) => new Set(task).size > 1));
        const turns = tasks.flatMap((task, t) =>
          task.flatMap((reward, e) =>
            ['solver', 'verifier'].map((agent, turn) => ({ task: `t${t}`, episode: `e${e}`, agent, turn, reward })),
          ),
        );
        for (const type of ['grpo', 'grpo-turn'] as const)
          expect(shares(turns, { type })).toEqual({ solver: 1, verifier: 1 });
      }),
    );
  });

  it('does not depend on a scale of the rewards or an added constant', () => {
    const turns = played(
      8,
      (random, called) => ({ worker: random.uniform(), expert: called ? random.uniform() : 0 }),
      (random) => random.chance(0.7),
    );
    const moved = turns.map((turn) => ({ ...turn, reward: 3 * turn.reward + 2 }));
    const [before, after] = [shares(turns), shares(moved)];
    for (const agent of ['worker', 'expert']) expect(after[agent]).toBeCloseTo(before[agent] as number, 10);
  });

  it('omits an agent with too few turns, and an agent whose rewards never differ', () => {
    const turns = played(1, (random) => ({ worker: Number(random.chance(1 / 2)), expert: 1 }));
    expect(Object.keys(shares(turns))).toEqual(['worker']);
    expect(shares(turns.slice(0, 12))).toEqual({});
  });
});
