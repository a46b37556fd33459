/** Laws of single estimators, in addition to the laws of all. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expectClose, flat, plain, reward, turns } from '../../../test/support/estimator-variants.js';
import type { TurnRecord } from '../../base/core/advantage.js';
import { standardDeviation } from '../../base/core/statistics.js';
import { estimateAdvantages } from '../../runs/composition/estimate-advantages.js';
import type { Estimator } from './estimators/index.js';

const lone: TurnRecord = { task: 'a', episode: 'e0', agent: 'solver', turn: 0, reward: 2 };

describe('laws of single estimators', () => {
  it('drmas does not depend on the rewards of other agents', () => {
    fc.assert(
      fc.property(turns, reward, (records, other) => {
        const changed = records.map((turn) => (turn.agent === 'critic' ? { ...turn, reward: other } : turn));
        const solver = (given: readonly TurnRecord[]) =>
          flat(given, { type: 'drmas' }).filter((_, i) => given[i]?.agent === 'solver');
        expect(solver(changed)).toEqual(solver(records));
      }),
    );
  });

  const zeroSum: [Estimator, (turn: TurnRecord) => string][] = [
    [{ type: 'drmas' }, ({ task, agent }) => `${task} ${agent}`],
    [{ type: 'drmas', spread: 'none' }, ({ task, agent }) => `${task} ${agent}`],
    [{ type: 'drmas-mean' }, ({ task, agent }) => `${task} ${agent}`],
    [{ type: 'rloo', byAgent: true }, ({ task, agent }) => `${task} ${agent}`],
    [{ type: 'grpo-turn' }, ({ task }) => task],
    [{ type: 'at-grpo' }, ({ task, agent, turn }) => `${task} ${agent} ${turn}`],
    [{ type: 'magrpo' }, ({ task, turn }) => `${task} ${turn}`],
    [{ type: 'gigpo', byAgent: true }, ({ task, agent }) => `${task} ${agent}`],
  ];
  it.each(zeroSum)('advantages of a group sum to 0: %o', (estimator, nameOf) => {
    fc.assert(
      fc.property(turns, (records) => {
        const sums = new Map<string, number>();
        flat(records, estimator).forEach((advantage, i) => {
          const name = nameOf(records[i] as TurnRecord);
          sums.set(name, (sums.get(name) ?? 0) + advantage);
        });
        for (const sum of sums.values()) expect(Math.abs(sum)).toBeLessThan(1e-8);
      }),
    );
  });

  it.each([{ type: 'grpo' }, { type: 'dr-grpo' }] as Estimator[])('episodes of a task sum to 0: %o', (estimator) => {
    fc.assert(
      fc.property(turns, (records) => {
        const ofEpisode = new Map<string, number>();
        const advantages = flat(records, estimator);
        records.forEach(({ task, episode }, i) => {
          ofEpisode.set(`${task} ${episode}`, advantages[i] ?? Number.NaN);
        });
        for (const task of ['a', 'b', 'c']) {
          const ofTask = [...ofEpisode].filter(([name]) => name.startsWith(task)).map(([, advantage]) => advantage);
          expect(Math.abs(ofTask.reduce((a, b) => a + b, 0))).toBeLessThan(1e-8);
        }
      }),
    );
  });

  it('rloo compares a turn with the mean of the others', () => {
    fc.assert(
      fc.property(turns, (records) => {
        flat(records, { type: 'rloo', byAgent: true }).forEach((advantage, i) => {
          const { task, agent, reward: earned } = records[i] as TurnRecord;
          const others = records.filter((t, j) => j !== i && t.task === task && t.agent === agent);
          const sum = others.reduce((total, turn) => total + turn.reward, 0);
          expect(advantage).toBeCloseTo(others.length === 0 ? 0 : earned - sum / others.length, 9);
        });
      }),
    );
  });

  it('at-grpo is drmas within turns of one index; a named step replaces the index', () => {
    fc.assert(
      fc.property(turns, (records) => {
        const apart = records.map((turn) => ({ ...turn, agent: `${turn.agent} ${turn.turn}` }));
        expectClose(flat(records, { type: 'at-grpo' }), flat(apart, { type: 'drmas' }), 1e-12);
        const renamed = records.map((turn) => ({ ...turn, turn: 0, envStep: turn.turn }));
        expect(flat(renamed, { type: 'at-grpo' })).toEqual(flat(records, { type: 'at-grpo' }));
      }),
    );
  });

  it("magrpo compares the team's return from each joint turn on, the same for all of its agents", () => {
    const gammas = fc.constantFrom(0, 0.5, 0.9, 1);
    fc.assert(
      fc.property(
        fc.array(fc.array(reward, { minLength: 3, maxLength: 3 }), { minLength: 2, maxLength: 5 }),
        gammas,
        (all, gamma) => {
          // Two agents act together in three joint turns of every episode.
          const records = all.flatMap((rewards, e) =>
            rewards.flatMap((stepReward, envStep) =>
              ['solver', 'critic'].map((agent, k) => ({
                task: 'a',
                episode: `e${e}`,
                agent,
                turn: 2 * envStep + k,
                reward: 0,
                stepReward,
                envStep,
              })),
            ),
          );
          const returns = all.map((rewards) =>
            rewards.map((_, t) => rewards.slice(t).reduce((sum, r, distance) => sum + gamma ** distance * r, 0)),
          );
          const expected = returns.flatMap((ofEpisode) =>
            ofEpisode.flatMap((value, t) => {
              const mean = returns.reduce((sum, other) => sum + (other[t] ?? 0), 0) / returns.length;
              return [value - mean, value - mean];
            }),
          );
          expectClose(flat(records, { type: 'magrpo', gamma }), expected, 1e-9);
        },
      ),
    );
  });

  it('magrpo gives the same if the outcome arrives as the step reward of the last turn', () => {
    fc.assert(
      fc.property(turns, (records) => {
        const last = (turn: TurnRecord) =>
          records.every((t) => t.task !== turn.task || t.episode !== turn.episode || t.turn <= turn.turn);
        const outcomes = records.map((turn) => ({ ...turn, reward: turn.episode.charCodeAt(1) % 3 }));
        const arriving = outcomes.map((turn) => ({ ...turn, stepReward: last(turn) ? turn.reward : 0 }));
        expectClose(flat(arriving, { type: 'magrpo' }), flat(plain(outcomes), { type: 'magrpo' }), 1e-9);
      }),
    );
    expect(() => estimateAdvantages(plain([lone, lone]), { type: 'magrpo', gamma: 0.9 })).toThrow('stepReward');
  });

  it('gigpo with step weight 0 is the episode part alone: dr-grpo and grpo, by agent drmas', () => {
    fc.assert(
      fc.property(turns, (records) => {
        const episodes = { type: 'gigpo', stepWeight: 0 } as const;
        expectClose(flat(records, episodes), flat(records, { type: 'dr-grpo' }), 1e-12);
        expectClose(flat(records, { ...episodes, spread: 'group' }), flat(records, { type: 'grpo' }), 1e-12);
        const byAgent = { ...episodes, byAgent: true } as const;
        expectClose(flat(records, byAgent), flat(records, { type: 'drmas', spread: 'none' }), 1e-12);
        expectClose(flat(records, { ...byAgent, spread: 'group' }), flat(records, { type: 'drmas' }), 1e-12);
      }),
    );
  });

  it('gigpo: an observation that occurs once adds nothing, and the step weight acts linearly', () => {
    fc.assert(
      fc.property(turns, fc.constantFrom(0.25, 2), (records, stepWeight) => {
        const apart = records.map((turn, i) => ({ ...turn, observation: `place ${i}` }));
        expectClose(flat(apart, { type: 'gigpo' }), flat(records, { type: 'dr-grpo' }), 1e-12);
        const of = (weight: number) => flat(records, { type: 'gigpo', stepWeight: weight });
        const [without, once, often] = [of(0), of(1), of(stepWeight)];
        expectClose(
          often,
          without.map((base, i) => base + stepWeight * ((once[i] ?? 0) - base)),
          1e-9,
        );
      }),
    );
  });

  it('gigpo: observations that are nearly equal match if `similarity` allows it', () => {
    const records = [1, 0].map((value, e) => ({
      ...lone,
      episode: `e${e}`,
      observation: `three red pears and ${e} fig`,
      stepReward: value,
      reward: 0,
    }));
    expect(flat(records, { type: 'gigpo' })).toEqual([0, 0]);
    expect(flat(records, { type: 'gigpo', similarity: 0.9 })).toEqual([0.5, -0.5]);
  });

  it("grpo-passk rewards only a task's best episode", () => {
    fc.assert(
      fc.property(turns, (records) => {
        const advantages = flat(records, { type: 'grpo-passk', spread: 'none' });
        for (const task of ['a', 'b', 'c']) {
          const paid = new Set(
            records.filter((turn, i) => turn.task === task && advantages[i] !== 0).map(({ episode }) => episode),
          );
          expect(paid.size).toBeLessThanOrEqual(1);
        }
        for (const advantage of advantages) expect(advantage).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it.each(['reinforce++', 'reinforce++-baseline', 'gae'] as const)('%s: tokens have mean 0 and variance 1', (type) => {
    fc.assert(
      fc.property(turns, (records) => {
        const tokens = estimateAdvantages(records, { type }).flatMap((advantage, i) =>
          typeof advantage === 'number' ? new Array<number>(records[i]?.length ?? 0).fill(advantage) : advantage,
        );
        if (tokens.length === 0) return;
        expect(Math.abs(tokens.reduce((a, b) => a + b, 0))).toBeLessThan(1e-6 * tokens.length);
        const spread = standardDeviation(tokens);
        if (spread !== 0) expect(spread).toBeCloseTo(1, 3);
      }),
    );
  });
});
