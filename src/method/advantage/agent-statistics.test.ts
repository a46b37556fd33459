/** Identity (whose statistics a turn is measured against) and frequency (what counts as one value there). */

import { mean, standardDeviation } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expectClose, flat, reward, turns } from '../../../test/support/estimator-variants.js';
import type { Estimator } from './estimators/index.js';

const turnOf = (episode: string, agent: string, turn: number, value: number, task = 'a'): TurnRecord => ({
  task,
  episode,
  agent,
  turn,
  reward: value,
});

/** Tasks of episodes with one reward. Each agent acts in each episode as often as its number, which may be 0. */
const team = fc.array(
  fc.array(fc.record({ value: reward, calls: fc.array(fc.nat(3), { minLength: 2, maxLength: 2 }) }), {
    minLength: 1,
    maxLength: 6,
  }),
  { minLength: 1, maxLength: 3 },
);
type Team = readonly (readonly { readonly value: number; readonly calls: readonly number[] }[])[];
const played = (tasks: Team, callsOf = (calls: readonly number[]) => calls): TurnRecord[] =>
  tasks.flatMap((episodes, t) =>
    episodes.flatMap(({ value, calls }, e) =>
      callsOf(calls).flatMap((times, k) =>
        Array.from({ length: times }, (_, i) => turnOf(`e${e}`, `agent${k}`, 10 * k + i, value, `t${t}`)),
      ),
    ),
  );

describe('the four of issue 81: identity and frequency', () => {
  // The agent is called once in the good episode and three times in each bad one.
  const uneven = [1, 0, 0].flatMap((value, e) => [
    turnOf(`e${e}`, 'other', 9, value),
    ...Array.from({ length: value === 1 ? 1 : 3 }, (_, i) => turnOf(`e${e}`, 'agent', i, value)),
  ]);
  const ofTheGoodTurn = (type: 'grpo' | 'grpo-turn' | 'drmas' | 'drmas-episode') =>
    flat(uneven, { type, epsilon: 0 })[1];

  it.each([
    ['grpo', [1, 0, 0]],
    ['grpo-turn', [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]],
    ['drmas', [1, 0, 0, 0, 0, 0, 0]],
    ['drmas-episode', [1, 0, 0]],
  ] as const)('%s compares with these values', (type, values) => {
    const centre = mean(values);
    expect(ofTheGoodTurn(type)).toBeCloseTo((1 - centre) / standardDeviation(values), 12);
  });

  it('drmas-episode does not see how often an agent is called in an episode', () => {
    fc.assert(
      fc.property(team, (tasks) => {
        const once = played(tasks, (calls) => calls.map((times) => Math.min(1, times)));
        const often = played(tasks);
        const first = flat(often, { type: 'drmas-episode' }).filter((_, i) => (often[i]?.turn ?? 1) % 10 === 0);
        expectClose(first, flat(once, { type: 'drmas-episode' }), 1e-12);
      }),
    );
  });
});

describe('drmas-episode', () => {
  it('is drmas if every agent acts once an episode, and grpo for a single agent', () => {
    fc.assert(
      fc.property(team, turns, (tasks, any) => {
        const once = played(tasks, (calls) => calls.map((times) => Math.min(1, times)));
        expectClose(flat(once, { type: 'drmas-episode' }), flat(once, { type: 'drmas' }), 1e-12);
        const single = any.map((turn) => ({ ...turn, agent: 'solver' }));
        expectClose(flat(single, { type: 'drmas-episode' }), flat(single, { type: 'grpo' }), 1e-12);
      }),
    );
  });

  it('never exceeds (n - 1) / sqrt(n), n the episodes in which the agent acts', () => {
    fc.assert(
      fc.property(turns, (records) => {
        flat(records, { type: 'drmas-episode', singleton: 'zero' }).forEach((advantage, i) => {
          const { task, agent } = records[i] as TurnRecord;
          const n = new Set(records.flatMap((t) => (t.task === task && t.agent === agent ? [t.episode] : []))).size;
          expect(Math.abs(advantage)).toBeLessThanOrEqual((n - 1) / Math.sqrt(n) + 1e-9);
        });
      }),
    );
  });
});

describe('drmas-batch', () => {
  it('is drmas of a step with one task, and does not depend on the task of a turn', () => {
    fc.assert(
      fc.property(turns, (records) => {
        const one = records.map((turn) => ({ ...turn, task: 'a', episode: `${turn.task} ${turn.episode}` }));
        expectClose(flat(one, { type: 'drmas-batch' }), flat(one, { type: 'drmas' }), 1e-12);
        expectClose(flat(records, { type: 'drmas-batch' }), flat(one, { type: 'drmas-batch' }), 1e-12);
      }),
    );
  });
});

describe('partition has every pool', () => {
  it.each([
    ['agent', 'turn', 'drmas'],
    ['agent-episodes', 'agent-episode', 'drmas-episode'],
    ['agent-chains', 'chain', { type: 'drmas', unit: 'chain' }],
    ['batch-agent', 'turn', 'drmas-batch'],
  ] as const)('%s', (pool, score, type) => {
    fc.assert(
      fc.property(turns, (records) => {
        const choices = { type: 'partition', score, mean: pool, spread: pool } as const;
        expect(flat(records, choices)).toEqual(flat(records, typeof type === 'string' ? { type } : type));
      }),
    );
  });
});

describe('the unit of the statistics', () => {
  const by = (records: readonly TurnRecord[], unit: 'turn' | 'chain' | 'episode') =>
    flat(records, { type: 'drmas', unit });
  const ofChains = (records: readonly TurnRecord[]) =>
    flat(records, { type: 'partition', score: 'chain', mean: 'task', spread: 'task', unit: 'chain' });

  it('turns drmas into drmas-episode; chains lie between the two', () => {
    fc.assert(
      fc.property(turns, (records) => {
        expect(by(records, 'turn')).toEqual(flat(records, { type: 'drmas' }));
        expect(by(records, 'episode')).toEqual(flat(records, { type: 'drmas-episode' }));
        const apart = records.map(({ chain: _, ...turn }) => turn);
        expect(by(apart, 'chain')).toEqual(by(records, 'turn'));
        expect(ofChains(apart)).toEqual(flat(records, { type: 'grpo-turn' }));
        const whole = records.map((turn) => ({ ...turn, chain: 0 }));
        expect(by(whole, 'chain')).toEqual(by(records, 'episode'));
        const alone = whole.map((turn) => ({ ...turn, agent: 'solver' }));
        expect(ofChains(alone)).toEqual(flat(alone, { type: 'grpo' }));
      }),
    );
  });

  it('chain: every chain counts once, however many turns it has, and all its turns get the same', () => {
    fc.assert(
      fc.property(
        turns,
        fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 40, maxLength: 40 }),
        (records, times) => {
          const chained = records.map((turn, i) => ({ ...turn, chain: i }));
          const longer = chained.flatMap((turn, i) =>
            Array.from({ length: times[i] as number }, () => ({ ...turn, name: i })),
          );
          for (const estimate of [(all: readonly TurnRecord[]) => by(all, 'chain'), ofChains]) {
            const once = estimate(chained);
            expectClose(
              estimate(longer),
              longer.map(({ name }) => once[name] as number),
              1e-9,
            );
          }
        },
      ),
    );
  });

  it('chain: a loop counts with the mean reward of its turns', () => {
    const loop = [0.9, 1].map((value, i) => ({ ...turnOf('e0', 'agent', i, value), chain: 0 }));
    const second = { ...turnOf('e0', 'agent', 2, 0), chain: 1 };
    const other = { ...turnOf('e1', 'agent', 0, 0.25), chain: 0 };
    const values = [0.95, 0, 0.25];
    const expected = values.map((value) => (value - mean(values)) / (standardDeviation(values) + 1e-6));
    expectClose(by([...loop, second, other], 'chain'), [expected[0], ...expected].map(Number), 1e-12);
  });
});

describe('agents that share their statistics', () => {
  const sharing = [['solver', 'critic']];
  const types = ['drmas', 'drmas-mean', 'drmas-std', 'drmas-episode', 'drmas-batch', 'at-grpo', 'ema'] as const;
  const estimators: Estimator[] = [
    ...types.map((type) => ({ type })),
    { type: 'rloo', byAgent: true },
    { type: 'reinforce++-baseline', byAgent: true },
    { type: 'gigpo', byAgent: true },
    { type: 'partition', score: 'turn', mean: 'agent', spread: 'none' },
    { type: 'drmas', unit: 'chain' },
  ];

  it.each(estimators)('count as one agent: %o', (estimator) => {
    fc.assert(
      fc.property(turns, (records) => {
        const one = records.map((turn) => ({ ...turn, agent: 'both' }));
        const shared = { ...estimator, shareStatistics: sharing } as Estimator;
        expect(flat(records, shared)).toEqual(flat(one, estimator));
        const others = [['solver', 'somebody'] as const];
        expect(flat(records, { ...estimator, shareStatistics: others } as Estimator)).toEqual(flat(records, estimator));
      }),
      { numRuns: 30 },
    );
  });

  it('are not those of an agent whose name has a plus', () => {
    const names = ['a+b', 'a', 'b', 'a%2Bb'];
    const rewards = [1, 0, 0.5, 0.25, 1, 0, 0, 1];
    const records = rewards.map((reward, i) => ({
      ...{ task: 't', episode: `${Math.floor(i / 4)}`, agent: names[i % 4] as string, turn: i % 4, reward },
    }));
    const renamed = records.map((turn) => ({ ...turn, agent: `agent${names.indexOf(turn.agent)}` }));
    const of = (turns: typeof records, group: readonly string[]) =>
      flat(turns, { type: 'drmas', spread: 'none', shareStatistics: [group] });
    expect(of(records, ['a', 'b'])).toEqual(of(renamed, ['agent1', 'agent2']));
    expect(of(records, ['a', 'b'])[0]).toBe(0); // 1 and 1 of 'a+b' alone, and not with 0, 0.5, 0 and 0
  });

  it('belong to one group each', () => {
    const both = {
      type: 'drmas',
      shareStatistics: [
        ['a', 'b'],
        ['b', 'c'],
      ],
    } as const;
    expect(() => flat([], both)).toThrow(/advantage\.shareStatistics: an agent is in two groups/);
    expect(() => flat([], { type: 'drmas', shareStatistics: [['a']] })).toThrow(/at least two agents/);
  });
});
