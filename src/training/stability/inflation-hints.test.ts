import { expect, it } from 'vitest';
import { tinyRecipe } from '../../../test/support/tiny-run.js';
import { inflationHints } from './inflation-hints.js';

const calls = { solver: { share: 1, success: 0.8, overall: 0.8 }, fixer: { share: 0.25, success: 0.1, overall: 0.8 } };
const diagnosed = { inflation: { solver: 1, fixer: 3.2 }, ownShare: {}, calls };

it.each(['grpo', 'grpo-turn', 'dr-grpo', 'drmas-std'] as const)(
  '%s: a warning at step 1, for the agent that is inflated',
  (type) => {
    const recipe = tinyRecipe({ advantage: { type } });
    expect(inflationHints(recipe, 1, diagnosed)).toEqual([
      {
        type: 'warning',
        code: 'inflation',
        step: 1,
        agent: 'fixer',
        message: expect.stringMatching(/^fixer is called/),
      },
    ]);
    expect(inflationHints(recipe, 2, diagnosed)).toEqual([]);
    expect(inflationHints(recipe, 1, { ...diagnosed, inflation: { solver: 1, fixer: 1.9 } })).toEqual([]);
    const drowned = inflationHints(recipe, 1, { inflation: { solver: 1, fixer: 1 }, ownShare: { fixer: 0.49 }, calls });
    expect(drowned).toMatchObject([{ agent: 'fixer', message: expect.stringMatching(/49 % follows its own rewards/) }]);
  },
);

it('there is none where every agent is measured by its own turns', () => {
  expect(inflationHints(tinyRecipe({ advantage: { type: 'drmas' } }), 1, diagnosed)).toEqual([]);
  expect(inflationHints(tinyRecipe({ advantage: { type: 'drmas-mean' } }), 1, diagnosed)).toEqual([]);
});
