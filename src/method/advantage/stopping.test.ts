/** The law of the decision to stop: the bias of the natural return of turns, in closed form, exact and measured. */

import { mean, standardDeviation } from '@drmas/engine/math';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drawEpisodes, hiddenBonus, type StoppingGame } from '../../../test/support/stopping-game.js';
import { standard } from '../../runs/composition/standard.js';
import { defineEstimator, type OpenEstimator } from './define-estimator.js';
import { openEstimator } from './estimators/index.js';
import { TurnBatch } from './turn-batch.js';

const open = (estimator: { readonly type: string; readonly [choice: string]: unknown }) =>
  openEstimator(estimator, standard.estimators);

/** Numbers in tenths: random doubles are mostly near 0. */
const tenths = (min: number, max: number) => fc.integer({ min, max }).map((n) => n / 10);

const games: fc.Arbitrary<StoppingGame> = fc.record({
  most: fc.integer({ min: 2, max: 4 }),
  going: tenths(2, 8),
  success: tenths(1, 9),
  earned: tenths(-10, 10).filter((earned) => earned !== 0),
});

/** The own rewards that are expected after each decision to go on: going x earned, as often as the game allows. */
const laterRewards = ({ most, going, earned }: StoppingGame): number[] =>
  Array.from({ length: most - 1 }, (_, turn) =>
    Array.from({ length: most - 1 - turn }, (_, later) => earned * going ** later).reduce((sum, each) => sum + each, 0),
  );

/**
 * MT-GRPO's construction (Wei et al. 2025): the outcome less its mean over the episodes, plus, for this turn and each
 * later one, its own reward less the mean over the episodes that come to that turn. The episode's own stopping decides
 * how many means are subtracted.
 */
const byTurnIndex = defineEstimator({
  type: 'by-turn-index',
  schema: {},
  source: 'Wei et al. 2025',
  formula: 'outcome - mean + sum over later turns of own reward - mean of the index',
  use: 'to test',
  compute(batch) {
    const outcomes = batch.numbers('outcome', ({ outcome }) => outcome);
    const firsts = batch.turns.flatMap(({ turn }, i) => (turn === 0 ? [outcomes[i] as number] : []));
    const own = batch.rewards.map((reward, i) => reward - (outcomes[i] as number));
    const centred = own.map((reward, i) => {
      const { turn } = batch.turns[i] as (typeof batch.turns)[number];
      return reward - mean(batch.turns.flatMap((other, k) => (other.turn === turn ? [own[k] as number] : [])));
    });
    return batch.turns.map((of, i) =>
      batch.turns.reduce(
        (sum, other, k) => (other.episode === of.episode && other.turn >= of.turn ? sum + (centred[k] as number) : sum),
        (outcomes[i] as number) - mean(firsts),
      ),
    );
  },
}).open({ type: 'by-turn-index' });

const expectBonus = (bonus: readonly number[], expected: readonly number[]) => {
  expect(bonus).toHaveLength(expected.length);
  for (const [i, each] of bonus.entries()) expect(each).toBeCloseTo(expected[i] as number, 9);
};

describe('the decision to stop', () => {
  it.each(['counterfactual', 'remax'])('%s lacks the rewards of later turns: minus what going on earns', (type) => {
    fc.assert(
      fc.property(games, fc.integer({ min: 1, max: 3 }), (game, size) => {
        expectBonus(
          hiddenBonus(game, open({ type }), size),
          laterRewards(game).map((each) => 0 - each),
        );
      }),
      { numRuns: 20 },
    );
  });

  it('means of turn indices, added up, have the same bias: it stays in large groups', () => {
    fc.assert(
      fc.property(games, fc.integer({ min: 1, max: 3 }), (game, size) => {
        // An episode's own outcome is 1 / size of the mean that it is compared with.
        const expected = laterRewards(game).map((each) => -each * (1 - 1 / size));
        expectBonus(hiddenBonus(game, byTurnIndex, size), expected);
      }),
      { numRuns: 20 },
    );
    const game = { most: 3, going: 0.5, success: 0.25, earned: 0.5 };
    expect(hiddenBonus(game, byTurnIndex, 8)[0]).toBeCloseTo(-0.75 * (7 / 8), 9);
  });

  const unbiased = [
    { type: 'magrpo', singleton: 'zero' },
    { type: 'grpo', episodeScore: 'outcome+penalties' },
    { type: 'dr-grpo', episodeScore: 'outcome+penalties' },
  ];
  it.each(unbiased)('the whole return less its mean has none: $type', (estimator) => {
    fc.assert(
      fc.property(games, fc.integer({ min: 1, max: 4 }), (game, size) => {
        expectBonus(hiddenBonus(game, open(estimator), size), new Array<number>(game.most - 1).fill(0));
      }),
      { numRuns: 20 },
    );
  });

  it('with rewards at the end alone, a mean over turns has none, and a spread over turns has some', () => {
    fc.assert(
      fc.property(games, fc.integer({ min: 1, max: 4 }), (game, size) => {
        const zero = new Array<number>(game.most - 1).fill(0);
        expectBonus(hiddenBonus({ ...game, earned: 0 }, open({ type: 'drmas', spread: 'none' }), size), zero);
      }),
      { numRuns: 20 },
    );
    const rare = { most: 3, going: 0.5, success: 0.25, earned: 0 };
    expect(hiddenBonus(rare, open({ type: 'drmas' }), 4)[0]).toBeLessThan(-0.04);
  });

  it('is what a mean over many drawn groups approaches', () => {
    const game = { most: 3, going: 0.5, success: 0.25, earned: 0.5 };
    const measured = (estimator: OpenEstimator, groups: number) => {
      const sides: [number[], number[]] = [[], []];
      for (let group = 0; group < groups; group++) {
        const records = drawEpisodes(game, 4, group);
        const advantages = estimator.compute(new TurnBatch(records));
        for (const [i, { turn, episode }] of records.entries())
          if (turn === 0) sides[records[i + 1]?.episode === episode ? 0 : 1].push(advantages[i] as number);
      }
      const error = Math.sqrt(sides.reduce((sum, side) => sum + standardDeviation(side) ** 2 / side.length, 0));
      return { bonus: mean(sides[0]) - mean(sides[1]), error };
    };
    for (const estimator of [open({ type: 'drmas' }), open({ type: 'magrpo' }), byTurnIndex]) {
      const { bonus, error } = measured(estimator, 3000);
      const exact = hiddenBonus(game, estimator, 4)[0] as number;
      expect(error).toBeLessThan(0.05);
      expect(Math.abs(bonus - exact), estimator.type).toBeLessThan(4 * error);
    }
  });
});
