/** Bounds of advantages, and cases in which estimators agree. */

import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expectClose, flat, plain, reward, turns } from '../../../test/support/estimator-variants.js';
import { estimateAdvantages } from '../../runs/composition/estimate-advantages.js';
import type { Estimator } from './estimators/index.js';

/** The number of turns among which a turn's value is normalised: its group, or the whole step's tokens. */
const groupSizes: Partial<Record<Estimator['type'], (records: readonly TurnRecord[], turn: TurnRecord) => number>> = {
  grpo: (records, { task }) => new Set(records.filter((t) => t.task === task).map(({ episode }) => episode)).size,
  drmas: (records, { task, agent }) => records.filter((t) => t.task === task && t.agent === agent).length,
  'grpo-turn': (records, { task }) => records.filter((t) => t.task === task).length,
  'at-grpo': (records, { task, agent, turn }) =>
    records.filter((t) => t.task === task && t.agent === agent && t.turn === turn).length,
  'reinforce++-baseline': (records) => tokensOf(records),
  'reinforce++': (records) => tokensOf(records),
  gae: (records) => tokensOf(records),
};
/** A group of one is not compared with a wider group, where the estimator has groups. */
const alone = (type: string) => (['reinforce++', 'gae'].includes(type) ? {} : { singleton: 'zero' });
const tokensOf = (records: readonly TurnRecord[]) => records.reduce((sum, { length = 0 }) => sum + length, 0);

describe('bounds', () => {
  it.each(Object.entries(groupSizes))('|A| <= (n - 1) / sqrt(n) in a group of n: %s', (type, sizeOf) => {
    fc.assert(
      fc.property(turns, (records) => {
        estimateAdvantages(records, { type, ...alone(type) } as Estimator).forEach((advantage, i) => {
          const n = sizeOf(records, records[i] as TurnRecord);
          for (const one of [advantage].flat())
            expect(Math.abs(one)).toBeLessThanOrEqual((n - 1) / Math.sqrt(n) + 1e-9);
        });
      }),
    );
  });

  it('the bound is reached by one turn that differs from all others', () => {
    const records = [5, 0, 0, 0].map((value, e) => ({
      task: 'a',
      episode: `e${e}`,
      agent: 'solver',
      turn: 0,
      reward: value,
    }));
    for (const type of ['grpo', 'drmas', 'grpo-turn', 'at-grpo'] as const)
      expect(flat(records, { type, epsilon: 0 })[0], type).toBeCloseTo(3 / 2, 12);
  });

  const undivided: Estimator[] = [
    { type: 'dr-grpo' },
    { type: 'drmas', spread: 'none' },
    { type: 'rloo', byAgent: true },
    { type: 'magrpo' },
    { type: 'grpo-passk', spread: 'none' },
    { type: 'partition', score: 'turn', mean: 'task', spread: 'none', unit: 'turn' },
  ];
  it.each(undivided)('|A| is no more than the range of the rewards if nothing divides: %o', (estimator) => {
    fc.assert(
      fc.property(turns, (records) => {
        const rewards = records.map((turn) => turn.reward);
        const range = Math.max(...rewards) - Math.min(...rewards);
        for (const advantage of flat(plain(records), estimator))
          expect(Math.abs(advantage)).toBeLessThanOrEqual(range + 1e-9);
      }),
    );
  });

  it('a mean of one group over the spread of another has no bound', () => {
    const turn = (episode: string, agent: string, value: number): TurnRecord => ({
      task: 'a',
      episode,
      agent,
      turn: 0,
      reward: value,
    });
    const records = [
      turn('e0', 'solver', 1),
      turn('e0', 'critic', 0),
      turn('e1', 'solver', 1.001),
      turn('e1', 'critic', 0),
    ];
    expect(Math.abs(flat(records, { type: 'drmas-std' })[0] ?? 0)).toBeGreaterThan(100);
  });
});

describe('synchronous teams', () => {
  it('drmas equals grpo if each agent acts once an episode, for one reward, without penalties', () => {
    const team = fc.array(fc.array(reward, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(team, fc.integer({ min: 1, max: 4 }), (tasks, agents) => {
        const records = tasks.flatMap((episodes, task) =>
          episodes.flatMap((value, episode) =>
            Array.from({ length: agents }, (_, k) => ({
              task: `t${task}`,
              episode: `e${episode}`,
              agent: `agent${k}`,
              turn: k,
              reward: value,
            })),
          ),
        );
        const grpo = flat(records, { type: 'grpo' });
        expectClose(flat(records, { type: 'drmas' }), grpo, 1e-12);
        expectClose(flat(records, { type: 'drmas-mean' }), grpo, 1e-12);
        expectClose(flat(records, { type: 'drmas-std' }), grpo, 1e-12);
        expectClose(flat(records, { type: 'at-grpo' }), grpo, 1e-12);
        const unscaled = flat(records, { type: 'dr-grpo' });
        expectClose(flat(records, { type: 'drmas', spread: 'none' }), unscaled, 1e-12);
        expectClose(flat(records, { type: 'magrpo' }), unscaled, 1e-12);
        expectClose(flat(records, { type: 'rloo', byAgent: true }), flat(records, { type: 'rloo' }), 1e-12);
      }),
    );
  });
});
