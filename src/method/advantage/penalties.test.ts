/** An estimator's declarations about penalties and a KL in the reward, beside its numbers. */

import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plain, turns, variants } from '../../../test/support/estimator-variants.js';
import { byType } from '../../../test/support/expectations.js';
import { estimateAdvantages } from '../../runs/composition/estimate-advantages.js';
import { standard } from '../../runs/composition/standard.js';
import { openEstimator } from './estimators/index.js';

/** Every variant of every estimator, for each score of an episode that it can have. */
const all = variants
  .flatMap((estimator) =>
    'episodeScore' in estimator
      ? (['mean', 'outcome+penalties', 'outcome', 'first'] as const).map((episodeScore) => ({
          ...estimator,
          episodeScore,
        }))
      : [estimator],
  )
  .map((estimator) => ({ estimator, declared: openEstimator(estimator, standard.estimators).penalties }));

/** Steps whose rewards are their named parts, so that a cost is all of the rest. The seed makes them repeatable. */
const steps = fc
  .sample(turns, { numRuns: 20, seed: 7 })
  .toSorted((a, b) => b.length - a.length)
  .slice(0, 2)
  .map((records) =>
    records.map((turn) => ({
      ...turn,
      reward: Object.values(turn.parts ?? {}).reduce((sum, part) => sum + part, 0),
      outcome: turn.episode.length + Number(turn.episode.at(-1)),
      tokenRewards: (turn.values ?? []).map(() => 0),
    })),
  );

/** Numbers from 0.1 to 1, all different. */
const costs = Array.from({ length: 101 }, (_, i) => 0.1 + (0.9 * ((i * 37) % 101)) / 101);

/** The steps with a penalty for each turn, or with a cost for each of its tokens. */
function charged(kind: 'penalty' | 'tokens', coefficient: number): TurnRecord[][] {
  let i = 0;
  const cost = () => -coefficient * (costs[i++ % costs.length] as number);
  return steps.map((records) =>
    records.map((turn) => {
      if (kind === 'tokens') return { ...turn, tokenRewards: turn.tokenRewards.map(cost) };
      const by = cost();
      const { reward, stepReward = 0, agentStepReward = 0 } = turn;
      return { ...turn, reward: reward + by, stepReward: stepReward + by, agentStepReward: agentStepReward + by };
    }),
  );
}

const kinds = (['penalty', 'tokens'] as const).map((kind) => ({
  kind,
  given: [0, 0.25, 4].map((coefficient) => charged(kind, coefficient)),
}));

describe('what an estimator declares about penalties and a KL in the reward is what it does', () => {
  it.each(byType(all, ({ estimator }) => estimator.type))('$type', ({ items }) => {
    const wrong: object[] = [];
    for (const { estimator, declared } of items)
      for (const { kind, given } of kinds) {
        const [free, cheap, dear] = given.map((all) =>
          all.flatMap((records) => estimateAdvantages(records, estimator).flat()),
        );
        const distance = (one: number[] = [], other: number[] = []) =>
          one.reduce((most, x, i) => Math.max(most, Math.abs(x - (other[i] ?? Number.NaN))), 0);
        const use =
          distance(free, cheap) === 0 && distance(free, dear) === 0
            ? 'left out'
            : distance(cheap, dear) < 0.02 * distance(free, dear)
              ? 'normalised'
              : 'counted';
        if (use !== declared) wrong.push({ ...estimator, kind, use, declared });
      }
    expect(wrong).toEqual([]);
  });

  it('a KL in the reward reaches the returns of steps without rewards of steps too', () => {
    const [free, dear] = [0, 4].map((coefficient) =>
      charged('tokens', coefficient).map((records) => estimateAdvantages(plain(records), { type: 'magrpo' })),
    );
    expect(free).not.toEqual(dear);
  });
});
