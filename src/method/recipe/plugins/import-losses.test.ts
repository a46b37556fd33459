import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tinyDefinition } from '../../../../test/support/tiny-run.js';
import { lossFrom } from '../../../engine/loss/loss-from.js';
import { resolveRecipe } from '../../../runs/composition/resolve-recipe.js';
import { codeHash } from '../code-hash.js';
import { loadRecipe } from '../load-recipe.js';
import { lossOf } from '../policy-losses.js';
import { withLossModules } from './import-losses.js';

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
    `import { lossFrom } from '${source('../../../engine/loss/loss-from.ts')}';\nexport default { type: 'recipe', input: { use: [${use}] } };`,
  );
  return { file, loading: loadRecipe(file) };
}

describe('the losses of a recipe', () => {
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
