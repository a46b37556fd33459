import { expect, it } from 'vitest';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import type { Turn } from '../../../base/core/episode.js';
import { estimatorOf } from '../../recipe/recipe.js';
import { together, wantedSignals } from './index.js';

const [first, second] = [{ turn: 0 }, { turn: 1 }] as [Turn, Turn];

it('joins the numbers of turns; the last number of a field wins', () => {
  const joined = together([
    new Map([[first, { baseline: 1, signals: { a: 1 } }]]),
    new Map([
      [first, { kl: [2], signals: { b: 2 } }],
      [second, { baseline: 3 }],
    ]),
    new Map([[second, { baseline: 4 }]]),
  ]);
  expect(joined.get(first)).toEqual({ baseline: 1, kl: [2], signals: { a: 1, b: 2 } });
  expect(joined.get(second)).toEqual({ baseline: 4 });
});

it.each([
  ['drmas', {}, []],
  ['remax', {}, ['greedy']],
  ['counterfactual', {}, ['branches']],
  ['gae', {}, ['values']],
  ['gae', { solver: { kl: { coefficient: 1 } } }, ['reference-kl', 'values']],
] as const)('%s with %j wants %j', (type, policies, names) => {
  const recipe = tinyRecipe({ advantage: { type }, policies });
  const settings = { estimator: estimatorOf(recipe), policies: recipe.policies };
  expect(wantedSignals(settings).map(({ name }) => name)).toEqual(names);
});
