import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineBackend } from '@drmas/engine/backends';
import { RecipeError } from '@drmas/engine/errors';
import { defineTracker } from '@drmas/engine/host';
import { lossFrom } from '@drmas/engine/loss';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { tinyDefinition } from '../../../../test/support/tiny-run.js';
import { TABLE_CAPABILITIES } from '../../../lab/table/table-backend.js';
import { resolveRecipe } from '../../../runs/composition/resolve-recipe.js';
import { defineEstimator } from '../../advantage/define-estimator.js';
import { codeHash } from '../code-hash.js';
import type { RecipeInput } from '../define.js';
import { loadRecipe } from '../load-recipe.js';
import { lossOf } from '../policy-losses.js';
import { recipeJson } from '../recipe.js';
import { withLossModules } from './import-losses.js';

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
    expect(recipe.estimator.laws).toEqual({ shift: [] });
    expect(recipe.lists.ownTrackers.map(({ name }) => name)).toEqual(['seen']);
    expect(Object.keys(recipeJson(recipe))).toEqual(Object.keys(recipeJson(resolve(undefined))));
  });

  it('may be a tracker again, under another name', () => {
    const { lists } = resolve([tracker('a'), defineTracker({ ...tracker('a'), name: 'b' })]);
    expect(lists.ownTrackers.map(({ name }) => name)).toEqual(['a', 'b']);
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
      /one of grpo, .*, raw, got "rax"; did you mean 'raw'\? A type of your own must stand in `use`$/,
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

describe('the losses of a recipe', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-loss-modules-'));
  });
  afterEach(() => rm(root, { recursive: true }));

  const fixture = new URL('../../../../test/fixtures/losses/self-normalised.ts', import.meta.url).href;
  const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

  let written = 0;

  /** Writes a recipe that uses this expression, beside a loss in `mine.ts`, and loads it. */
  async function load(use: string) {
    const file = join(root, `recipe-${written++}.ts`); // a module is imported once
    await writeFile(join(root, 'mine.ts'), `export { default } from '${fileURLToPath(fixture)}';`);
    await writeFile(
      file,
      `import { lossFrom } from '${source('../../../../packages/engine/src/loss/loss-from.ts')}';\nexport default { type: 'recipe', input: { use: [${use}] } };`,
    );
    return { file, loading: loadRecipe(file) };
  }

  it('are imported when its file is loaded, and their modules are part of the code hash', async () => {
    const { file, loading } = await load("lossFrom(new URL('./mine.ts', import.meta.url).href)");
    const { definition } = await loading;
    expect(definition.input.use?.[0]).toMatchObject({
      kind: 'loss',
      losses: [{ declaration: { type: 'self-normalised' } }],
    });
    const before = await codeHash(file);
    await writeFile(join(root, 'mine.ts'), '// changed');
    expect(await codeHash(file)).not.toBe(before);
  });

  it('are refused by their entry if their module is not part of it, or cannot be loaded', async () => {
    const hidden = await load("lossFrom(new URL(['./mi', 'ne.ts'].join(''), import.meta.url).href)");
    await expect(hidden.loading).rejects.toThrow(
      'use[0]: ' +
        join(root, 'mine.ts') +
        " is not part of the run's code hash; write lossFrom(import.meta.resolve('./mine.ts'))",
    );
    const missing = await load("{}, lossFrom(new URL('./none.ts', import.meta.url).href)");
    await expect(missing.loading).rejects.toThrow(/^use\[1\]: file:\S+none\.ts cannot be loaded: /);
  });

  it('can be named by the recipe and by a policy, and reach the backend with their module', async () => {
    const loss = { type: 'self-normalised', scale: 2 } as const;
    const definition = await withLossModules(tinyDefinition({ use: [lossFrom(fixture)], loss }));
    const recipe = resolveRecipe(definition);
    expect(recipe.loss).toMatchObject(loss);
    expect(lossOf(recipe, 'solver')).toMatchObject({ type: 'own', settings: loss, module: fixture });
    expect(() => resolveRecipe(definition, { overrides: ['loss.scale=wide'] })).toThrow(
      'loss.scale: expected a number',
    );
    const plain = resolveRecipe(definition, { overrides: ['policies.solver.loss={"type":"gspo"}'] });
    expect(lossOf(plain, 'solver')).toMatchObject({ type: 'gspo' });
  });

  it('are refused before their module is imported, without a module, and by a name that is taken', async () => {
    const refused = (use: unknown) => () => resolveRecipe(tinyDefinition({ use: use as never }));
    expect(refused([lossFrom(fixture)])).toThrow(`use[0]: the module ${fixture} is not loaded`);
    expect(refused([{ kind: 'loss', type: 'mine' }])).toThrow(
      "use[0]: a loss is named by its module: expected lossFrom(import.meta.resolve('./my-loss.ts'))",
    );
    const twice = await withLossModules(tinyDefinition({ use: [lossFrom(fixture), lossFrom(fixture)] }));
    expect(() => resolveRecipe(twice)).toThrow("use[1]: an entry before it is the loss 'self-normalised' too");
  });
});
