import { expect, it } from 'vitest';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import { openEstimator } from '../../advantage/estimators/index.js';
import type { Recipe } from '../../recipe/recipe.js';
import { estimatorHints } from './estimator-hints.js';

const hintsOf = ({ advantage, training }: Recipe, step: number, advantages: Parameters<typeof estimatorHints>[2]) =>
  estimatorHints({ estimator: openEstimator(advantage), groupSize: training.groupSize }, step, advantages);

const calls = {
  solver: { share: 1, success: 0.8, overall: 0.8, alone: 0 },
  fixer: { share: 0.25, success: 0.1, overall: 0.8, alone: 0.2 },
};
const diagnosed = { inflation: { solver: 1, fixer: 3.2 }, ownShare: {}, calls };

it.each(['grpo', 'grpo-turn', 'dr-grpo', 'drmas-std'] as const)(
  '%s: a warning at step 1, for the agent that is inflated',
  (type) => {
    const recipe = tinyRecipe({ advantage: { type } });
    expect(hintsOf(recipe, 1, diagnosed)).toEqual([
      {
        type: 'warning',
        code: 'inflation',
        step: 1,
        agent: 'fixer',
        message: expect.stringMatching(/^fixer is called/),
      },
    ]);
    expect(hintsOf(recipe, 2, diagnosed)).toEqual([]);
    expect(hintsOf(recipe, 1, { ...diagnosed, inflation: { solver: 1, fixer: 1.9 } })).toEqual([]);
    const drowned = hintsOf(recipe, 1, { inflation: { solver: 1, fixer: 1 }, ownShare: { fixer: 0.49 }, calls });
    expect(drowned).toMatchObject([
      { agent: 'fixer', message: expect.stringMatching(/49 % of its learning signal comes from its own rewards/) },
    ]);
  },
);

it('there is none if every agent is measured by its own turns', () => {
  expect(hintsOf(tinyRecipe({ advantage: { type: 'drmas' } }), 1, diagnosed)).toEqual([]);
  expect(hintsOf(tinyRecipe({ advantage: { type: 'drmas-mean' } }), 1, diagnosed)).toEqual([]);
});

it('there is one for an agent that often acts once, if groups of one are skipped', () => {
  const often = { ...diagnosed, calls: { ...calls, fixer: { ...calls.fixer, alone: 0.3 } } };
  const hints = (advantage: Parameters<typeof tinyRecipe>[0]) => hintsOf(tinyRecipe(advantage), 1, often);
  for (const type of ['drmas', 'drmas-mean', 'drmas-episode'] as const)
    expect(hints({ advantage: { type } })).toEqual([
      {
        type: 'warning',
        code: 'alone',
        step: 1,
        agent: 'fixer',
        message: expect.stringMatching(/^In 30 % of the tasks/),
      },
    ]);
  expect(hints({ advantage: { type: 'drmas', singleton: 'raw' } })).toEqual([]);
  expect(hints({ advantage: { type: 'drmas-batch' } })).toEqual([]);
  expect(hints({ advantage: { type: 'gae' } })).toEqual([]);
});
