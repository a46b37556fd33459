import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { tinyDefinition } from '../../../../test/support/tiny-run.js';
import { RecipeError } from '../../../base/core/errors.js';
import { defineTracker } from '../../../base/core/tracker-declaration.js';
import { defineBackend } from '../../../engine/backends/backend-declaration.js';
import { TABLE_CAPABILITIES } from '../../../lab/table/table-backend.js';
import { resolveRecipe } from '../../../runs/composition/resolve-recipe.js';
import { defineEstimator } from '../../advantage/define-estimator.js';
import type { RecipeInput } from '../define.js';
import { estimatorOf, recipeJson } from '../recipe.js';

const words = { source: 'a test', formula: 'r', use: 'in this test' };
const raw = (type: string) =>
  defineEstimator({
    type,
    schema: { factor: z.number().default(2).describe('A factor.') },
    ...words,
    compute: (batch, { factor }) => batch.rewards.map((reward) => factor * reward),
  });
const backend = (type: string) =>
  defineBackend({
    type,
    schema: { url: z.string().default('here').describe('An address.') },
    capabilities: TABLE_CAPABILITIES,
    open: () => Promise.reject(new Error('not opened')),
  });
const tracker = (name: string) => defineTracker({ name, open: async () => ({ name }) });

const resolve = (use: unknown, more: Record<string, unknown> = {}) =>
  resolveRecipe(tinyDefinition({ use, ...more } as Partial<RecipeInput>));

function refusal(use: unknown, more: Record<string, unknown> = {}): string {
  try {
    resolve(use, more);
  } catch (error) {
    expect(error).toBeInstanceOf(RecipeError);
    return (error as RecipeError).message;
  }
  throw new Error('expected a refusal');
}

describe('the plug-ins of a recipe', () => {
  it('add their types to the sections, with their defaults', () => {
    const use = [raw('raw'), backend('mine'), tracker('seen')];
    const recipe = resolve(use, { advantage: { type: 'raw' }, backend: { type: 'mine' } });
    expect(recipe.advantage).toEqual({ type: 'raw', factor: 2 });
    expect(recipe.backend).toEqual({ type: 'mine', url: 'here' });
    expect(estimatorOf(recipe).laws).toEqual({ shift: [] });
    expect(recipe.lists.ownTrackers.map(({ name }) => name)).toEqual(['seen']);
    expect(Object.keys(recipeJson(recipe))).toEqual(Object.keys(recipeJson(resolve(undefined))));
  });

  it('do not reach other recipes', () => {
    resolve([raw('raw')], { advantage: { type: 'raw' } });
    expect(() => resolve(undefined, { advantage: { type: 'raw' } })).toThrow('got "raw"');
  });

  it('are checked like the settings of drmas', () => {
    const use = [raw('raw')];
    expect(refusal(use, { advantage: { type: 'raw', faktor: 3 } })).toBe(
      "advantage.faktor: unknown key 'faktor'; did you mean 'factor'? (known: type, factor)",
    );
    expect(refusal(use, { advantage: { type: 'rax' } })).toMatch(
      /one of grpo, .*, raw, got "rax"; did you mean 'raw'\?$/,
    );
  });

  it.each([
    ['use', 'a text', 'mine', 'use: expected a list of plug-ins, got "mine"'],
    ['use[1]', 'something else', [raw('raw'), { type: 'raw' }], 'use[1]: expected what defineEstimator, lossFrom,'],
    ['use[0]', 'a promise', [Promise.resolve(raw('raw'))], 'use[0]: expected what'],
    ['use[0]', 'a name of drmas', [raw('grpo')], "use[0]: drmas has the estimator 'grpo' itself"],
    ['use[0]', 'a hidden name of drmas', [backend('table')], "use[0]: drmas has the backend 'table' itself"],
    ['use[0]', 'a tracker of drmas', [tracker('mlflow')], "use[0]: drmas has the tracker 'mlflow' itself"],
    ['use[2]', 'a name twice', [raw('a'), raw('b'), raw('a')], "use[2]: an entry before it is the estimator 'a' too"],
    ['use[0]', 'no schema', [{ ...raw('a'), schema: {} }], 'use[0]: the estimator has no schema'],
    [
      'use[0]',
      'a setting that is no schema',
      [{ ...raw('a'), schema: z.strictObject({ type: z.literal('a') }).extend({ x: 5 as unknown as z.ZodType }) }],
      "use[0]: the setting 'x' of the estimator is no schema of zod 4: 5",
    ],
    ['use[0]', 'no type', [{ ...raw('a'), schema: z.strictObject({}) }], 'use[0]: the estimator has no `type`'],
    ['use[0]', 'no open', [{ kind: 'tracker', name: 'a' }], 'use[0]: a tracker needs a `name` and a function `open`'],
    [
      'use[0]',
      'a tracker with an address',
      [{ ...tracker('a'), address: 'url' }],
      "use[0]: the tracker 'a' of a recipe has no address: expected address 'none'",
    ],
  ])('%s is refused if it is %s', (_, __, use, message) => {
    expect(refusal(use).startsWith(message)).toBe(true);
  });
});

describe('a backend of a user', () => {
  it('has error messages for the parts that it lacks', async () => {
    const { plan, prepareExport } = backend('mine');
    await expect(plan.readModel(undefined as never, 'model')).rejects.toThrow(
      "the backend 'mine' reads no model directories",
    );
    expect(await plan.memory(undefined as never, [], 0, 0)).toBeUndefined();
    expect(plan.memoryElsewhere([])).toBe("the backend 'mine' does not say how much memory it needs");
    await expect(prepareExport({ policy: 'solver' } as never)).rejects.toThrow(
      "policy 'solver' was trained on the backend 'mine', which exports nothing",
    );
  });
});
