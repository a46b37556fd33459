import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { agentCalls } from './analysis/agent-calls.js';
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
  it('is the factor of Lemma 4.2, with variances of whole populations', () => {
    // Episodes: mu = 1/2, sigma² = 1/4. Searcher: eight turns, two of them 1: mu_k = 1/4, sigma_k² = 3/16.
    const { answerer, searcher } = inflation(uneven, { type: 'drmas' });
    expect(answerer).toBe(1);
    expect(searcher).toBeCloseTo((3 / 16 + 1 / 16) / (1 / 4), 12);
  });

  it('uses the statistics that the estimator in use shares', () => {
    // All twelve turns: four 1s, so mu = 1/3 and sigma² = 2/9.
    const { answerer, searcher } = inflation(uneven, { type: 'grpo-turn' });
    expect(answerer).toBeCloseTo((1 / 4 + 1 / 36) / (2 / 9), 12);
    expect(searcher).toBeCloseTo((3 / 16 + 1 / 144) / (2 / 9), 12);
    const byTurns = { type: 'partition', score: 'turn', mean: 'agent', spread: 'agent', unit: 'turn' } as const;
    expect(inflation(uneven, byTurns)).toEqual(inflation(uneven, { type: 'grpo-turn' }));
    expect(inflation(uneven, { type: 'gae' })).toEqual(inflation(uneven, { type: 'grpo' }));
  });

  it('uses the score of grpo, the score of the episode, also if an agent has rewards of its own', () => {
    const paid = uneven.map((turn) => (turn.agent === 'searcher' ? { ...turn, reward: turn.reward + 5 } : turn));
    const outcome = { type: 'grpo', episodeScore: 'outcome' } as const;
    const withOutcome = paid.map((turn, i) => ({ ...turn, outcome: uneven[i]?.reward ?? 0 }));
    expect(inflation(withOutcome, outcome)).toEqual(inflation(uneven, { type: 'grpo' }));
    expect(inflation(paid, { type: 'grpo-turn' }).searcher).not.toBeCloseTo(
      inflation(uneven, { type: 'grpo-turn' }).searcher as number,
      3,
    );
  });

  it('is 1 for a team whose agents are called equally often in every episode', () => {
    const team = fc.record({
      rewards: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 2, maxLength: 9 }),
      calls: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
    });
    fc.assert(
      fc.property(team, ({ rewards, calls }) => {
        const turns = rewards.flatMap((reward, e) =>
          calls.flatMap((times, k) => Array.from({ length: times }, (_, t) => turnOf(`e${e}`, `agent${k}`, t, reward))),
        );
        for (const type of ['grpo', 'grpo-turn'] as const)
          for (const factor of Object.values(inflation(turns, { type }))) expect(factor).toBeCloseTo(1, 12);
      }),
    );
  });

  it('of an agent that is called once is (q(1 - 2p) + p²) / (p(1 - p)), p and q the success overall and when called', () => {
    const episode = fc.record({ success: fc.boolean(), called: fc.boolean() });
    fc.assert(
      fc.property(fc.array(episode, { minLength: 2, maxLength: 40 }), (episodes) => {
        const share = (of: typeof episodes) => of.filter(({ success }) => success).length / of.length;
        const called = episodes.filter((one) => one.called);
        const [p, q] = [share(episodes), share(called)];
        fc.pre(called.length > 0 && p > 0 && p < 1);
        const turns = episodes.flatMap(({ success, called: too }, e) => [
          turnOf(`e${e}`, 'coder', 0, Number(success)),
          ...(too ? [turnOf(`e${e}`, 'fixer', 1, Number(success))] : []),
        ]);
        const { coder, fixer } = inflation(turns, { type: 'grpo' });
        expect(coder).toBeCloseTo(1, 10);
        expect(fixer).toBeCloseTo((q * (1 - 2 * p) + p ** 2) / (p * (1 - p)), 10);
        expect(agentCalls(new TurnBatch(turns)).fixer).toEqual({
          share: called.length / episodes.length,
          success: expect.closeTo(q, 12),
          overall: expect.closeTo(p, 12),
          alone: Number(called.length === 1),
        });
      }),
    );
  });

  it('averages over turns of groups with enough spread and omits agents without such a group', () => {
    const flat = ['e0', 'e1'].flatMap((episode) => [
      turnOf(episode, 'answerer', 0, 1, 'flat'),
      turnOf(episode, 'critic', 1, 1, 'flat'),
    ]);
    expect(inflation([...uneven, ...flat], { type: 'grpo' })).toEqual(inflation(uneven, { type: 'grpo' }));
    expect(inflation(flat, { type: 'drmas' })).toEqual({});
    expect(inflation([], { type: 'drmas' })).toEqual({});
  });
});
