/** Laws of single estimators, in addition to the laws of all. */

import { RandomStream, standardDeviation } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expectClose, flat, plain, reward, turns } from '../../../test/support/estimator-variants.js';
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
    [{ type: 'drmas', singleton: 'zero' }, ({ task, agent }) => `${task} ${agent}`],
    [{ type: 'drmas', spread: 'none', singleton: 'zero' }, ({ task, agent }) => `${task} ${agent}`],
    [{ type: 'drmas-mean', singleton: 'zero' }, ({ task, agent }) => `${task} ${agent}`],
    [{ type: 'rloo', byAgent: true, singleton: 'zero' }, ({ task, agent }) => `${task} ${agent}`],
    [{ type: 'grpo-turn' }, ({ task }) => task],
    [{ type: 'at-grpo', singleton: 'zero' }, ({ task, agent, turn }) => `${task} ${agent} ${turn}`],
    [{ type: 'magrpo', singleton: 'zero' }, ({ task, turn }) => `${task} ${turn}`],
    [{ type: 'gigpo', byAgent: true, singleton: 'zero' }, ({ task, agent }) => `${task} ${agent}`],
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
        flat(records, { type: 'rloo', byAgent: true, singleton: 'zero' }).forEach((advantage, i) => {
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
        const alone = { singleton: 'zero' } as const;
        expectClose(flat(records, { type: 'at-grpo', ...alone }), flat(apart, { type: 'drmas', ...alone }), 1e-12);
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

/** A task's turns of one agent, one an episode. */
const turnsOf = (task: string, rewards: readonly number[], more: Partial<TurnRecord> = {}): TurnRecord[] =>
  rewards.map((earned, e) => ({ ...lone, task, episode: `e${e}`, reward: earned, ...more }));

describe('shrinkage', () => {
  const plainly: Estimator = { type: 'shrinkage', spread: 'none' };

  it('is the mean of the others if tasks differ and nothing differs within them, and for a single task', () => {
    fc.assert(
      fc.property(turns, (records) => {
        const one = records.map((turn) => ({ ...turn, task: 'a' }));
        expectClose(flat(one, plainly), flat(one, { type: 'rloo', byAgent: true }), 1e-9);
      }),
    );
    const apart = [...turnsOf('a', [1, 1, 1]), ...turnsOf('b', [0, 0])];
    expectClose(flat(apart, plainly), [0, 0, 0, 0, 0], 1e-12);
  });

  it('compares with all other tasks if tasks do not differ beyond chance, and a group of one always', () => {
    // Both means are 1/2: the variance between tasks is 0.
    const alike = [...turnsOf('a', [1, 0]), ...turnsOf('b', [0, 1, 1, 0])];
    expectClose(flat(alike, plainly), [0.5, -0.5, -0.5, 0.5, 0.5, -0.5], 1e-12);
    const alone = [...turnsOf('a', [1]), ...turnsOf('b', [3]), ...turnsOf('c', [8])];
    expectClose(flat(alone, plainly), [1 - 5.5, 3 - 4.5, 8 - 2], 1e-12);
    expect(flat([lone], plainly)).toEqual([0]);
  });

  it('weighs by hand: sigma^2 = 1/2, tau^2 = 7/4, so a pair has w = 7/9', () => {
    // Within: 2 x (1/4 + 1/4) / 2 degrees of freedom. Between: 2 x (1 + 1) - sigma^2, over 4 - 8/4.
    const records = [...turnsOf('a', [3, 2]), ...turnsOf('b', [1, 0])];
    const w = 7 / 9;
    const baselines = [2 * w + 0.5 * (1 - w), 3 * w + 0.5 * (1 - w), 0 * w + 2.5 * (1 - w), 1 * w + 2.5 * (1 - w)];
    expectClose(
      flat(records, plainly),
      [3, 2, 1, 0].map((earned, i) => earned - (baselines[i] ?? Number.NaN)),
      1e-12,
    );
  });

  it("gives each agent's advantages a mean square of 1, whatever other agents earn", () => {
    fc.assert(
      fc.property(turns, reward, (records, other) => {
        const advantages = flat(records, { type: 'shrinkage', epsilon: 0 });
        for (const agent of ['solver', 'critic']) {
          const squares = advantages.filter((_, i) => records[i]?.agent === agent).map((advantage) => advantage ** 2);
          if (squares.some((square) => square !== 0))
            expect(squares.reduce((sum, square) => sum + square, 0) / squares.length).toBeCloseTo(1, 9);
        }
        const changed = records.map((turn) => (turn.agent === 'critic' ? { ...turn, reward: other } : turn));
        const ofSolver = (all: readonly number[]) => all.filter((_, i) => records[i]?.agent === 'solver');
        expect(ofSolver(flat(changed, { type: 'shrinkage', epsilon: 0 }))).toEqual(ofSolver(advantages));
      }),
    );
  });

  it('has a baseline with less error than the mean of the others in small groups of unlike tasks', () => {
    // Success rates of the tasks are spread evenly over .2 to .6; all rewards of pairs, drawn from one seed.
    const random = new RandomStream('shrinkage');
    const rates = Array.from({ length: 2000 }, (_, i) => 0.2 + (0.4 * i) / 2000);
    const records = rates.flatMap((rate, i) =>
      turnsOf(
        `t${i}`,
        [0, 0].map(() => Number(random.chance(rate))),
      ),
    );
    const error = (estimator: Estimator) => {
      const advantages = flat(records, estimator);
      const squares = records.map(({ reward: earned }, i) => {
        const baseline = earned - (advantages[i] ?? Number.NaN);
        return (baseline - (rates[Math.floor(i / 2)] ?? Number.NaN)) ** 2;
      });
      return squares.reduce((sum, square) => sum + square, 0) / squares.length;
    };
    // By theory: rloo's error is the mean of p (1 - p), 0.227; the best linear one's is tau^2 s^2 / (tau^2 + s^2),
    // 0.0126.
    expect(error({ type: 'rloo', byAgent: true })).toBeCloseTo(0.227, 1);
    expect(error(plainly)).toBeLessThan(0.02);
  });
});

describe('gdpo', () => {
  it('takes a part that only some turns have for 0 in the others, whatever its name', () => {
    const advantagesFor = (name: string) =>
      [true, false].map((byAgent) => {
        const turnOf = (episode: number, parts: Record<string, number>) => {
          const reward = Object.values(parts).reduce((sum, part) => sum + part, 0);
          return { task: 'a', episode: `e${episode}`, agent: 'solver', turn: 0, reward, parts };
        };
        return flat([turnOf(0, { [name]: 1 }), turnOf(1, {}), turnOf(2, { other: 1 })], { type: 'gdpo', byAgent });
      });
    expect(advantagesFor('constructor')).toEqual(advantagesFor('built'));
  });

  it('without parts is grpo, by agent drmas, normalised over the step', () => {
    fc.assert(
      fc.property(turns, (records) => {
        const bare = plain(records).map(({ parts: _, ...turn }) => turn);
        for (const [byAgent, type] of [
          [false, 'grpo'],
          [true, 'drmas'],
        ] as const) {
          const [advantages, expected] = [flat(bare, { type: 'gdpo', byAgent }), flat(bare, { type })];
          // One positive factor for the step, or for each agent, after a mean was taken off.
          for (const agent of byAgent ? ['solver', 'critic'] : ['solver|critic']) {
            const rows = bare.flatMap((turn, i) => (agent.includes(turn.agent) ? [i] : []));
            const pairs = rows.flatMap((i) => rows.map((j) => [i, j] as const));
            for (const [i, j] of pairs)
              if ((expected[i] ?? 0) > (expected[j] ?? 0) + 1e-6)
                expect(advantages[i] ?? Number.NaN).toBeGreaterThan(advantages[j] ?? Number.NaN);
          }
        }
      }),
      { numRuns: 30 },
    );
  });

  it('does not let a large part hide a small one, and counts by weight', () => {
    const rows = [
      { correct: 1, format: 0.01 },
      { correct: 1, format: 0 },
      { correct: 0, format: 0.01 },
      { correct: 0, format: 0 },
    ];
    const records = rows.map((parts, e) => ({
      ...lone,
      episode: `e${e}`,
      reward: parts.correct + parts.format,
      parts,
    }));
    const spread = Math.sqrt(8 / 3);
    const exact = { epsilon: 0 } as const;
    expectClose(flat(records, { type: 'gdpo', ...exact }), [2 / spread, 0, 0, -2 / spread], 1e-9);
    expectClose(flat(records, { type: 'gdpo', byAgent: true, ...exact }), [2 / spread, 0, 0, -2 / spread], 1e-9);
    expectClose(
      flat(records, { type: 'gdpo', weights: { format: 0 }, ...exact }),
      flat(
        records.map((turn) => ({ ...turn, reward: turn.parts.correct, parts: {} })),
        { type: 'grpo', ...exact },
      ),
      1e-9,
    );
  });

  it('does not depend on the unit of any part', () => {
    fc.assert(
      fc.property(turns, fc.constantFrom(0.01, 100), fc.boolean(), (records, unit, byAgent) => {
        const exact = { type: 'gdpo', byAgent, epsilon: 0, minimumSpread: 1e-9 } as const;
        const rest = (turn: TurnRecord) => turn.reward - (turn.parts?.format ?? 0);
        const rescaled = records.map((turn) => {
          const format = (turn.parts?.format ?? 0) * unit;
          return { ...turn, reward: rest(turn) + format, parts: { ...turn.parts, format } };
        });
        expectClose(flat(rescaled, exact), flat(records, exact), 1e-6);
      }),
    );
  });

  it('counts what is no named part as one more part', () => {
    const records = turnsOf('a', [1, 1], { parts: { correct: 1 } }).map((turn, e) => ({
      ...turn,
      reward: 1 - 0.1 * e,
    }));
    expectClose(flat(records, { type: 'gdpo', epsilon: 0 }), [Math.SQRT1_2, -Math.SQRT1_2], 1e-9);
    expect(flat(records, { type: 'gdpo', restWeight: 0 })).toEqual([0, 0]);
  });
});

describe('maxrl', () => {
  it.each([2, 3, 5, 8])('has the gradient of the first n - 1 terms of log p, in expectation: n = %i', (n) => {
    // A policy that succeeds with probability p; the derivative of its log-prob by the logit is (success - p).
    for (const p of [0.1, 0.5, 0.9]) {
      let expected = 0;
      for (let outcome = 0; outcome < 2 ** n; outcome++) {
        const rewards = Array.from({ length: n }, (_, i) => (outcome >> i) & 1);
        const successes = rewards.reduce((sum, each) => sum + each, 0);
        const advantages = flat(turnsOf('a', rewards), { type: 'maxrl' });
        const gradient = advantages.reduce((sum, a, i) => sum + (a * ((rewards[i] ?? 0) - p)) / n, 0);
        expected += p ** successes * (1 - p) ** (n - successes) * gradient;
      }
      const terms = Array.from({ length: n - 1 }, (_, k) => (1 - p) ** k * p * (1 - p));
      expect(expected).toBeCloseTo(
        terms.reduce((sum, term) => sum + term, 0),
        12,
      );
    }
  });

  it('is at most n - 1 for rewards of 0 or more, and 0 in a group without a success', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3), { minLength: 1, maxLength: 8 }), (rewards) => {
        for (const advantage of flat(turnsOf('a', rewards), { type: 'maxrl', byAgent: true })) {
          expect(advantage).toBeLessThanOrEqual(rewards.length - 1 + 1e-9);
          expect(advantage).toBeGreaterThanOrEqual(-1);
        }
      }),
    );
    expect(flat(turnsOf('a', [0, 0]), { type: 'maxrl' })).toEqual([0, 0]);
  });
});

describe('hierarchical-grpo', () => {
  it('compares the named agents within an episode and the others within a task', () => {
    fc.assert(
      fc.property(turns, (records) => {
        const apart = records.map((turn) =>
          turn.agent === 'solver' ? { ...turn, task: `${turn.task} ${turn.episode}` } : turn,
        );
        const alone = { singleton: 'zero' } as const;
        const estimator: Estimator = { type: 'hierarchical-grpo', episodeAgents: ['solver'], ...alone };
        expectClose(flat(records, estimator), flat(apart, { type: 'drmas', spread: 'none', ...alone }), 1e-12);
      }),
    );
  });
});

describe('rejection', () => {
  const turnsOf = (task: string, rewards: readonly number[]) =>
    rewards.flatMap((reward, e) =>
      ['solver', 'verifier'].map((agent, turn) => ({ task, episode: `${task}${e}`, agent, turn, reward })),
    );
  const twice = (values: readonly number[]) => values.flatMap((value) => [value, value]);
  const records = [...turnsOf('a', [1, 0, 1, 0.5]), ...turnsOf('b', [0, -1]), ...turnsOf('c', [0.25])];
  const estimate = (choices: Omit<Extract<Estimator, { type: 'rejection' }>, 'type'>) =>
    estimateAdvantages(records, { type: 'rejection', ...choices });

  it('gives the turns of accepted episodes 1 and the other turns 0', () => {
    expect(estimate({})).toEqual(twice([1, 0, 1, 1, 0, 0, 1]));
    expect(estimate({ above: 0.5 })).toEqual(twice([1, 0, 1, 0, 0, 0, 0]));
    expect(estimate({ above: -1 })).toEqual(twice([1, 1, 1, 1, 1, 0, 1]));
  });

  it("keeps each task's best episodes, which share the task's weight", () => {
    expect(estimate({ keep: 'best' })).toEqual(twice([1 / 2, 0, 1 / 2, 0, 0, 0, 1]));
    expect(estimate({ keep: 'best', above: -1 })).toEqual(twice([1 / 2, 0, 1 / 2, 0, 1, 0, 1]));
  });

  it("a task's best stays the best when a constant is added to every reward, as long as the bound is below", () => {
    const moved = records.map((record) => ({ ...record, reward: record.reward + 3 }));
    const estimator = { type: 'rejection', keep: 'best', above: -1e6 } as const;
    expect(estimateAdvantages(moved, estimator)).toEqual(estimateAdvantages(records, estimator));
  });

  it('accepts whole episodes, by their score', () => {
    const penalised = records.map((record, i) => (i === 1 ? { ...record, reward: 0.5 } : record));
    const choices = { type: 'rejection', above: 0.7 } as const;
    expect(estimateAdvantages(penalised, choices).slice(0, 4)).toEqual([1, 1, 0, 0]);
    expect(estimateAdvantages(penalised, { ...choices, above: 0.8 }).slice(0, 4)).toEqual([0, 0, 0, 0]);
  });
});
