/** The laws of Advantage Alignment, and its result on the iterated prisoner's dilemma. */

import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expectClose, flat } from '../../../../test/support/estimator-variants.js';
import type { Estimator } from './index.js';

const players = ['alice', 'bob'] as const;

/** Games of one task: the reward of each player in each round of each episode. */
const recordsOf = (games: readonly (readonly (readonly number[])[])[]): TurnRecord[] =>
  games.flatMap((rounds, e) =>
    rounds.flatMap((earned, envStep) =>
      players.map((agent, p) => ({
        task: 'a',
        episode: `e${e}`,
        agent,
        turn: 2 * envStep + p,
        envStep,
        reward: 0,
        agentStepReward: earned[p] ?? 0,
      })),
    ),
  );

const plain = { type: 'advantage-alignment', gamma: 1 } as const;

const earned = fc.integer({ min: -20, max: 20 }).map((n) => n / 10);
const games = fc.integer({ min: 1, max: 4 }).chain((rounds) =>
  fc.array(fc.array(fc.tuple(earned, earned), { minLength: rounds, maxLength: rounds }), {
    minLength: 2,
    maxLength: 6,
  }),
);

describe('advantage alignment', () => {
  it('agrees with a computation by hand', () => {
    // Two episodes of two rounds; returns with gamma 1/2 are alice 2, 0 against 0, 0 and bob 1.5, 1 against 1, 2.
    const records = recordsOf([
      [
        [2, 1],
        [0, 1],
      ],
      [
        [0, 0],
        [0, 2],
      ],
    ]);
    // Against the mean of both episodes: alice 1, 0 and -1, 0; bob 0.25, -0.5 and -0.25, 0.5. In the second round the
    // term is gamma x gamma x the earlier advantage x the other's: for alice 1/4 x 1 x -0.5 and 1/4 x -1 x 0.5, for bob
    // 0.
    expectClose(flat(records, { ...plain, gamma: 0.5 }), [1, 0.25, 0 - 0.125, -0.5, -1, -0.25, 0 - 0.125, 0.5], 1e-12);
    expectClose(flat(records, { ...plain, gamma: 0.5, weight: 4 }), [1, 0.25, -0.5, -0.5, -1, -0.25, -0.5, 0.5], 1e-12);
  });

  it('is AT-GRPO if the weight is 0 and rewards arrive at the end', () => {
    fc.assert(
      fc.property(games, (all) => {
        const records = recordsOf(
          all.map((rounds) => rounds.map((pair, t) => (t === rounds.length - 1 ? pair : [0, 0]))),
        );
        const atTheEnd = all.flatMap((rounds) => rounds.flatMap(() => rounds.at(-1) ?? []));
        const rewarded = records.map((turn, i) => ({ ...turn, reward: atTheEnd[i] ?? Number.NaN }));
        const alone: Estimator = { ...plain, weight: 0, spread: 'group' };
        expectClose(flat(records, alone), flat(rewarded, { type: 'at-grpo' }), 1e-9);
      }),
    );
  });

  it.each(['none', 'group'] as const)('adds the sign of past times other, spread %s', (spread) => {
    fc.assert(
      fc.property(games, fc.constantFrom(0.5, 1), (all, gamma) => {
        const records = recordsOf(all);
        const [alone, aligned] = [0, 1].map((weight) => flat(records, { ...plain, spread, gamma, weight })) as [
          number[],
          number[],
        ];
        records.forEach(({ episode, agent, envStep = 0 }, i) => {
          const sum = (of: (turn: TurnRecord) => boolean) =>
            alone.reduce((total, a, j) => total + (of(records[j] as TurnRecord) ? a : 0), 0);
          const before = records.reduce((past, turn, j) => {
            const isEarlier = turn.episode === episode && turn.agent === agent && (turn.envStep ?? 0) < envStep;
            return isEarlier ? past + gamma ** (envStep - (turn.envStep ?? 0)) * (alone[j] as number) : past;
          }, 0);
          const other = sum((turn) => turn.episode === episode && turn.envStep === envStep && turn.agent !== agent);
          expect((aligned[i] as number) - (alone[i] as number)).toBeCloseTo(gamma * before * other, 8);
        });
      }),
    );
  });

  it('does not depend on the order of rows, on the scale if it divides, or on who speaks twice in a round', () => {
    fc.assert(
      fc.property(games, fc.constantFrom(0.5, 4), (all, scale) => {
        const records = recordsOf(all);
        const spec: Estimator = { type: 'advantage-alignment', spread: 'group', epsilon: 0 };
        const expected = flat(records, spec);
        expectClose(flat(records.toReversed(), spec).reverse(), expected, 1e-8);
        const scaled = records.map((turn) => ({ ...turn, agentStepReward: scale * (turn.agentStepReward ?? 0) }));
        expectClose(flat(scaled, spec), expected, 1e-8);
        const twice = records.flatMap((turn) => (turn.agent === 'alice' ? [turn, { ...turn, turn: -1 }] : [turn]));
        const spoken = flat(twice, spec);
        expectClose(
          spoken.filter((_, i) => twice[i]?.turn !== -1),
          expected,
          1e-8,
        );
        expectClose(
          spoken.filter((_, i) => twice[i]?.turn === -1),
          expected.filter((_, i) => records[i]?.agent === 'alice'),
          1e-8,
        );
      }),
    );
  });

  it('refuses turns without a round or a reward', () => {
    const [first, ...rest] = recordsOf([[[1, 0]], [[0, 1]]]) as [TurnRecord, ...TurnRecord[]];
    const { envStep: _, ...nameless } = first;
    const { agentStepReward: __, ...unpaid } = first;
    expect(() => flat([nameless, ...rest], plain)).toThrow(
      /^turns\[0\] \(task a, episode e0, agent alice, turn 0\): .* give each call of an agent its round/,
    );
    expect(() => flat([unpaid, ...rest], plain)).toThrow('agent alice, turn 0): agentStepReward must be');
  });
});

describe("the iterated prisoner's dilemma", () => {
  const moves = ['C', 'D'] as const;
  const payoff = { CC: [3, 3], CD: [0, 5], DC: [5, 0], DD: [1, 1] } as const;
  const pairs = moves.flatMap((a) => moves.flatMap((b) => [`${a}${b}`] as (keyof typeof payoff)[]));
  // Both players play by chance: every game of two rounds is as likely as any other.
  const played = pairs.flatMap((first) => pairs.map((second) => [first, second] as const));
  const records = recordsOf(played.map((rounds) => rounds.map((pair) => payoff[pair])));

  /** How much more alice's cooperation in the second round is reinforced than her defection, by the first round. */
  const cooperates = (after: keyof typeof payoff, estimator: Estimator) => {
    const advantages = flat(records, estimator);
    const mean = (move: 'C' | 'D') => {
      const of = played.flatMap(([first, second], e) =>
        first === after && second.startsWith(move) ? [advantages[4 * e + 2] as number] : [],
      );
      return of.reduce((sum, advantage) => sum + advantage, 0) / of.length;
    };
    return mean('C') - mean('D');
  };

  it('is all defection to players that learn for themselves', () => {
    for (const after of pairs) expect(cooperates(after, { ...plain, weight: 0 })).toBeCloseTo(-1.5, 12);
  });

  it('is tit for tat to players that see each other learn', () => {
    // By hand: with 2.25 as the mean, alice's past is r0 - 2.25 + r1 - 2.25 and bob's advantage is his r1 - 2.25.
    const terms = { CC: 2.125, CD: -8.375, DC: 9.125, DD: -4.875 };
    for (const after of pairs) {
      expect(cooperates(after, plain)).toBeCloseTo(terms[after] - 1.5, 12);
      expect(Math.sign(cooperates(after, plain))).toBe(after.endsWith('C') ? 1 : -1);
    }
  });
});
