import { whiten } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { estimateAdvantages } from '../../../../runs/composition/estimate-advantages.js';
import { estimateStep } from '../../estimate.js';
import { everyToken } from './token-rewards.js';

const gae = (choices: object = {}) =>
  ({ type: 'gae', across: 'episode', gamma: 1, lambda: 1, whiten: 'batch', ...choices }) as const;

/** Turns of one episode, from the values of their tokens and the reward of each turn. */
const episode = (turns: readonly { values: readonly number[]; stepReward: number; envStep?: number }[]): TurnRecord[] =>
  turns.map((turn, index) => ({
    task: 't',
    episode: 'e',
    agent: index % 2 === 0 ? 'searcher' : 'answerer',
    turn: index,
    reward: 1,
    length: turn.values.length,
    ...turn,
  }));

/** Advantages before they are whitened: the critic's targets minus its values. */
const raw = (turns: readonly TurnRecord[], choices: object = {}) =>
  (estimateStep(turns, gae(choices)).returns ?? []).map((row, i) =>
    row.map((target, t) => target - (turns[i]?.values?.[t] ?? Number.NaN)),
  );

const number = fc.integer({ min: -20, max: 20 }).map((n) => n / 8);

describe('generalised advantages across the turns of an episode', () => {
  it('bootstrap from the next turn, and get the outcome once, at its end', () => {
    const turns = episode([
      { values: [0.5, 0.25], stepReward: -0.1 },
      { values: [0.75], stepReward: 1 },
    ]);
    const at = (gamma: number, lambda: number) => {
      const last = 1 - 0.75;
      const second = -0.1 + gamma * 0.75 - 0.25 + gamma * lambda * last;
      const first = gamma * 0.25 - 0.5 + gamma * lambda * second;
      return [[first, second], [last]];
    };
    for (const [gamma, lambda] of [
      [1, 1],
      [0.9, 0],
      [0.9, 0.5],
    ] as const)
      for (const [i, row] of raw(turns, { gamma, lambda }).entries())
        for (const [t, advantage] of row.entries()) expect(advantage).toBeCloseTo(at(gamma, lambda)[i]?.[t] ?? NaN, 12);
    const unwhitened = raw(turns);
    expect(estimateAdvantages(turns, gae())).toEqual(whiten(unwhitened, everyToken(unwhitened)));
  });

  it('do not depend on how the episode is divided into turns of agents', () => {
    const values = fc.array(number, { minLength: 1, maxLength: 8 });
    const unit = fc.constantFrom(0, 0.5, 1);
    fc.assert(
      fc.property(values, number, fc.nat(8), unit, unit, (all, outcome, at, gamma, lambda) => {
        const whole = episode([{ values: all, stepReward: outcome }]).map((turn) => ({ ...turn, reward: outcome }));
        const cut = episode([
          { values: all.slice(0, at), stepReward: 0 },
          { values: all.slice(at), stepReward: outcome },
        ]);
        const expected = raw(whole, { gamma, lambda, across: 'turn' }).flat();
        expect(raw(whole, { gamma, lambda }).flat()).toEqual(expected);
        expect(raw(cut, { gamma, lambda }).flat()).toEqual(expected); // a turn without tokens passes its reward on
      }),
    );
  });

  it('are the later rewards minus the value without a discount, each step counted once', () => {
    const turns = episode([
      { values: [0], stepReward: 0.5, envStep: 0 },
      { values: [0, 0], stepReward: 0.5, envStep: 0 },
      { values: [0], stepReward: 2, envStep: 1 },
    ]);
    expect(raw(turns)).toEqual([[2.5], [2.5, 2.5], [2]]);
    expect(raw(turns, { across: 'turn' })).toEqual([[1], [1, 1], [1]]);
  });

  it('need the reward of every step', () => {
    const turns = episode([{ values: [0], stepReward: 1 }]).map(({ stepReward: _, ...turn }) => turn);
    expect(() => estimateAdvantages(turns, gae())).toThrow(/turns\[0\].*stepReward must be a finite number/);
    expect(() => estimateAdvantages(turns, gae({ across: 'turn' }))).not.toThrow();
  });
});
