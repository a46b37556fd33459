// @module-tag verify
import { describe, expect, it } from 'vitest';
import type { Step } from '../../src/base/core/events.js';
import { mean } from '../../src/base/core/statistics.js';
import { lora } from '../../src/engine/model/model-spec.js';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import {
  eventsOf,
  filesOf,
  resumedTiny,
  stepsOf,
  temporaryRoot,
  tinyModel,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();
const whole = tinyModel;
const advantage = { type: 'gae', lambda: 0.95 } as const;
const recipeOf = (changes: Partial<RecipeInput> = {}, overrides: readonly string[] = []) =>
  tinyRecipe({ advantage, ...changes }, overrides);

describe('a run with critics', () => {
  it.each(['turn', 'episode'] as const)(
    'earns more as it goes, and its critics come to expect that: a %s',
    async (across) => {
      const quick = { optimizer: { learningRate: 3e-2 }, critic: { optimizer: { learningRate: 3e-2 } } };
      const recipe = recipeOf({ policies: { solver: quick, verifier: quick } }, [
        'training.steps=30',
        'training.tasksPerStep=4',
        'evaluation.every=100',
        'training.checkpointEvery=100',
        `advantage.across=${across}`,
      ]);
      const steps = await stepsOf(await trainTiny(root, recipe));
      const reward = (part: readonly Step[]) => mean(part.map((step) => step.reward.mean));
      expect(reward(steps.slice(-5))).toBeGreaterThan(reward(steps.slice(0, 5)) + 0.3);
      const last = steps.at(-1)?.policies.solver?.critic;
      expect(last?.loss).toBeLessThan(0.02); // the squared error of returns near 0.8
      expect(steps[0]?.policies.solver?.critic?.explainedVariance).toBeCloseTo(0, 12); // all values are 0 at first
    },
  );

  it.each([
    ['of whole models', whole, { optimizer: { type: 'adamw' } }],
    [
      'of adapters, with SGD and mini-batches',
      lora(whole, { rank: 2 }),
      { optimizer: { type: 'sgd', momentum: 0.9 }, miniBatches: 2, epochs: 2 },
    ],
  ] as const)('goes on from a checkpoint as if never interrupted: %s', async (_, model, critic) => {
    const recipe = recipeOf({ model, policies: { solver: { critic }, verifier: {} } } as Partial<RecipeInput>);
    const [uninterrupted, resumed] = [await trainTiny(root, recipe), await resumedTiny(root, recipe, 2)];
    expect(await eventsOf(resumed)).toEqual(await eventsOf(uninterrupted));
    const files = await filesOf(uninterrupted);
    expect(await filesOf(resumed)).toEqual(files);
    const critics = Object.keys(files).filter((file) => file.includes('step-000004/solver.critic/'));
    expect(critics.some((file) => file.endsWith('value_head.safetensors'))).toBe(true);
  });

  it('may let its critics learn first', async () => {
    const ahead = { critic: { aheadSteps: 2 } };
    const steps = await stepsOf(await trainTiny(root, recipeOf({ policies: { solver: ahead } })));
    expect(steps.map(({ policies }) => (policies.solver?.gradientNorm ?? 0) > 0)).toEqual([false, false, true, true]);
    expect(steps.map(({ policies }) => (policies.verifier?.gradientNorm ?? 0) > 0)).toEqual([true, true, true, true]);
    for (const { policies } of steps) expect(policies.solver?.critic?.gradientNorm).toBeGreaterThan(0);
    // The rate rises from its first update on, not from the run's.
    const rate = steps[2]?.policies.solver?.learningRate as number;
    expect(rate).toBe(steps[0]?.policies.verifier?.learningRate);
  });

  it('has none where the estimator needs no values', async () => {
    const run = await trainTiny(root, recipeOf({ advantage: { type: 'drmas' } }, ['training.steps=1']));
    expect((await stepsOf(run))[0]?.policies.solver).not.toHaveProperty('critic');
    expect(tinyRecipe().policies.solver).not.toHaveProperty('critic');
    expect(recipeOf().policies.solver?.critic).toMatchObject({ optimizer: { learningRate: 1e-3 }, clip: 0.5 });
  });
});
