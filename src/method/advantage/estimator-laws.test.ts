/** The laws of advantages, for every estimator with every combination of its choices. */

import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  equalEpisodes,
  expectClose,
  flat,
  plain,
  sharedVariants,
  turns as turnsAlone,
  variants,
} from '../../../test/support/estimator-variants.js';
import { byType, inEach } from '../../../test/support/expectations.js';
import { type Estimator, estimateAdvantages } from '../../runs/composition/estimate-advantages.js';
import { standard } from '../../runs/composition/standard.js';
import { LARGEST } from '../../teams/rollout/reward-values.js';
import { comparableEstimators } from './analysis/compared-estimators.js';
import { declarationOf, openEstimator } from './estimators/index.js';

const all = [...variants, ...sharedVariants].map((estimator) => {
  const { laws } = openEstimator(estimator, standard.estimators);
  // A division by the spread removes a scale completely only if the epsilon is 0.
  return {
    estimator: laws.takesScaleOut && 'epsilon' in estimator ? { ...estimator, epsilon: 0 } : estimator,
    ...laws,
  };
});

type Law = (typeof all)[number];

/** Turns with an outcome of their episode, which some scores of episodes need. */
const turns = turnsAlone.map((records) =>
  records.map((turn) => ({ ...turn, outcome: turn.episode.length + Number(turn.episode.at(-1)) / 4 })),
);

/** The turns, and the same turns without rewards of steps if the estimator does not need them. */
function accepted(records: readonly TurnRecord[], estimator: Estimator): (readonly TurnRecord[])[] {
  try {
    estimateAdvantages(plain(records), estimator);
    return [records, plain(records)];
  } catch {
    return [records];
  }
}

/** The turns with all numbers of their rewards times a factor. */
const scaledBy = (records: readonly TurnRecord[], scale: number): TurnRecord[] =>
  records.map((turn) => ({
    ...turn,
    reward: turn.reward * scale,
    ...(turn.outcome === undefined ? {} : { outcome: turn.outcome * scale }),
    stepReward: (turn.stepReward ?? 0) * scale,
    agentStepReward: (turn.agentStepReward ?? 0) * scale,
    baseline: (turn.baseline ?? 0) * scale,
    values: (turn.values ?? []).map((value) => value * scale),
    parts: Object.fromEntries(Object.entries(turn.parts ?? {}).map(([name, value]) => [name, value * scale])),
  }));

const typeOf = ({ estimator }: { readonly estimator: Estimator }) => estimator.type;

/** Fewer inputs for an estimator with dozens of choices: each is tried with all of them. */
const runsFor = (items: readonly unknown[]) => ({ numRuns: items.length > 20 ? 4 : 10 });

it('every estimator is among them', () => {
  expect(new Set(variants.map(({ type }) => type))).toEqual(new Set(standard.estimators.map(({ type }) => type)));
});

const valuesOf = ({ estimator }: Law) =>
  Object.entries(estimator).map((choice) => JSON.stringify([estimator.type, choice]));
/** Every so many of an estimator's combinations, and each that has a value of a choice which none before it has. */
const daily = byType(all, typeOf).flatMap(({ items }) => {
  const stride = items.length > 20 ? 29 : 1;
  const tried = new Set<string>();
  return items.filter((item, i) => {
    const before = tried.size;
    for (const value of valuesOf(item)) tried.add(value);
    return tried.size > before || i % stride === 0;
  });
});

it('the daily tests try each value of each choice', () => {
  expect(new Set(daily.flatMap(valuesOf))).toEqual(new Set(all.flatMap(valuesOf)));
  expect(daily.length).toBeLessThan(all.length / 2);
});

describe('laws of all estimators', () => laws(daily));
describe('laws of all estimators, with all of their choices', { tags: 'verify' }, () => laws(all));

function laws(all: readonly Law[]): void {
  it.each(byType(all, typeOf))('adding a constant to every reward changes nothing: $type', ({ items }) => {
    fc.assert(
      fc.property(turns, fc.integer({ min: -8, max: 8 }), (records, by) =>
        inEach(items, ({ estimator, shift }) => {
          for (const given of accepted(records, estimator)) {
            const moved = given.map((turn) => ({
              ...turn,
              ...(shift.includes('reward') && { reward: turn.reward + by, outcome: (turn.outcome ?? 0) + by }),
              ...(shift.includes('stepReward') && { stepReward: (turn.stepReward ?? 0) + by }),
              ...(shift.includes('agentStepReward') && { agentStepReward: (turn.agentStepReward ?? 0) + by }),
              ...(shift.includes('baseline') && { baseline: (turn.baseline ?? 0) + by }),
              ...(shift.includes('values') && { values: (turn.values ?? []).map((value) => value + by) }),
            }));
            expectClose(flat(moved, estimator), flat(given, estimator), 1e-8);
          }
        }),
      ),
      runsFor(items),
    );
  });

  it.each(
    byType(
      all.filter(({ takesScaleOut }) => takesScaleOut !== undefined),
      typeOf,
    ),
  )('a positive scale of the rewards is removed, or passes through if nothing divides: $type', ({ items }) => {
    fc.assert(
      fc.property(turns, fc.constantFrom(0.5, 3, 8), (records, scale) =>
        inEach(items, ({ estimator, takesScaleOut, scaleError = 1e-9 }) => {
          const scaled = scaledBy(records, scale);
          const expected = flat(records, estimator).map((advantage) => advantage * (takesScaleOut ? 1 : scale));
          expectClose(flat(scaled, estimator), expected, scaleError);
        }),
      ),
      runsFor(items),
    );
  });

  const comparing = all.filter(({ shift }) => shift.includes('reward') || shift.includes('agentStepReward'));
  it.each(byType(comparing, typeOf))('equal rewards of any size give no advantage: $type', ({ items }) => {
    for (const size of [0.1, -0.1, 1e-12, 1e6 / 3, -1e15 / 7, 1e22 / 3, LARGEST, -LARGEST])
      for (const episodes of [2, 3, 7])
        inEach(items, ({ estimator }) => {
          const advantages = flat(equalEpisodes(size, episodes), estimator);
          expect(advantages.filter((advantage) => advantage !== 0)).toEqual([]);
        });
  });

  it.each(
    byType(
      all.filter(({ takesScaleOut }) => takesScaleOut !== undefined),
      typeOf,
    ),
  )('a scale of the rewards up to the largest is removed, or passes through: $type', ({ items }) => {
    fc.assert(
      fc.property(turns, (records) =>
        inEach(items, ({ estimator, takesScaleOut, scaleError }) => {
          const scale = 2 ** 90; // a power of two rounds nothing; 4 times this is near the largest reward
          const scaled = scaledBy(records, scale);
          const expected = flat(records, estimator).map((advantage) => advantage * (takesScaleOut ? 1 : scale));
          if (scaleError === undefined) expectClose(flat(scaled, estimator), expected, 1e-9);
          else expect(flat(scaled, estimator).every(Number.isFinite)).toBe(true);
        }),
      ),
      runsFor(items),
    );
  });

  it.each(byType(all, typeOf))('go on with the turns that are left, whichever are: $type', ({ items }) => {
    fc.assert(
      fc.property(turns, fc.infiniteStream(fc.boolean()), (records, keep) =>
        inEach(items, ({ estimator }) => {
          const left = records.filter(() => keep.next().value as boolean);
          for (const given of [left, ...left.map((turn) => [turn])]) {
            const advantages = estimateAdvantages(given, estimator);
            expect(advantages).toHaveLength(given.length);
            expect(advantages.flat().every(Number.isFinite)).toBe(true);
          }
        }),
      ),
      runsFor(items),
    );
  });

  // The rule `first` scores an episode by its first row.
  const unordered = all.filter(({ estimator }) => !('episodeScore' in estimator) || estimator.episodeScore !== 'first');
  it.each(byType(unordered, typeOf))('the order of the rows does not matter: $type', ({ items }) => {
    fc.assert(
      fc.property(turns, fc.infiniteStream(fc.nat()), (records, keys) =>
        inEach(items, ({ estimator }) => {
          const order = records
            .map((_, i) => ({ i, key: keys.next().value as number }))
            .sort((x, y) => x.key - y.key || x.i - y.i)
            .map(({ i }) => i);
          const shuffled = estimateAdvantages(
            order.map((i) => records[i] as TurnRecord),
            estimator,
          );
          const advantages = estimateAdvantages(records, estimator);
          expectClose(
            shuffled.flat(),
            order.flatMap((i) => advantages[i] ?? Number.NaN),
            1e-8,
          );
        }),
      ),
      runsFor(items),
    );
  });

  it.each(byType(all, typeOf))('names and the number of the first turn do not matter: $type', ({ items }) => {
    fc.assert(
      fc.property(turns, (records) =>
        inEach(items, ({ estimator }) => {
          const others = records.map((turn) => ({
            ...turn,
            task: `${turn.task}+% 7`,
            episode: `__proto__${turn.episode}`,
            turn: turn.turn + 5,
            ...(turn.envStep === undefined ? {} : { envStep: turn.envStep + 5 }),
          }));
          expectClose(flat(others, estimator), flat(records, estimator), 1e-12);
        }),
      ),
      runsFor(items),
    );
  });

  it.each(byType(all, typeOf))('no turns give no advantages, and turns are not changed: $type', ({ items }) => {
    inEach(items, ({ estimator }) => expect(estimateAdvantages([], estimator)).toEqual([]));
    fc.assert(
      fc.property(turns, (records) =>
        inEach(items, ({ estimator }) => {
          const before = structuredClone(records);
          estimateAdvantages(records, estimator);
          expect(records).toEqual(before);
        }),
      ),
      { numRuns: 5 },
    );
  });
}

describe('the properties that estimators declare', () => {
  it.each(comparableEstimators)('$type needs nothing but rewards and names', (estimator) => {
    fc.assert(
      fc.property(turns, (records) => {
        const bare = records.map(({ task, episode, agent, turn, reward }) => ({ task, episode, agent, turn, reward }));
        expect(estimateAdvantages(bare, estimator)).toHaveLength(bare.length);
      }),
      runsFor([]),
    );
  });

  const weighing = variants.filter(
    (estimator) => declarationOf(estimator, standard.estimators).traits.weighsDemonstrations,
  );
  it.each(byType(weighing, ({ type }) => type))(
    'advantages that weigh demonstrations are never negative: $type',
    ({ items }) => {
      fc.assert(
        fc.property(turns, (records) =>
          inEach(items, (estimator) => {
            expect(flat(records, estimator).filter((advantage) => !(advantage >= 0))).toEqual([]);
          }),
        ),
        runsFor([]),
      );
    },
  );

  it.each(standard.estimators)('$type declares its source, its formula and its use', (declaration) => {
    for (const text of [declaration.source, declaration.formula, declaration.use]) expect(text).toMatch(/^\S.*[^.]$/);
  });
});
