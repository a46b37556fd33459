import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { resolveRecipe } from '../../runs/composition/resolve-recipe.js';
import { codeHash, localFiles } from './code-hash.js';
import { loadRecipe, shippedRecipes } from './load-recipe.js';
import { recipeJson } from './recipe.js';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-recipe-'));
});
afterEach(() => rm(root, { recursive: true }));

describe('loadRecipe', () => {
  it('loads a file of the user', async () => {
    const file = join(root, 'mine.ts');
    await writeFile(join(root, 'team.ts'), 'export const team: string = "a team";');
    await writeFile(file, 'import { team } from "./team.js";\nexport default { type: "recipe", input: { team } };');
    const loaded = await loadRecipe(file);
    expect(loaded).toMatchObject({ name: 'mine', source: file, definition: { input: { team: 'a team' } } });
    expect(loaded.codeHash).toBe(await codeHash(file));
  });

  it('explains a wrong name or file', async () => {
    await expect(loadRecipe('maht')).rejects.toThrow(/no recipe 'maht'; did you mean 'math'\? \(known: .*gsm8k/);
    await expect(loadRecipe('no/such.ts')).rejects.toThrow(/there is no recipe file .*such\.ts/);
    await expect(loadRecipe('examples\\judge.ts')).rejects.toThrow(/; write the path with \/, as examples\/judge\.ts/);
    await writeFile(join(root, 'team.ts'), '');
    await writeFile(join(root, 'team.test.ts'), '');
    await expect(loadRecipe(join(root, 'tean.ts'))).rejects.toThrow(
      /tean\.ts; did you mean 'team\.ts'\? \(known: team/,
    );
    const path = join(root, 'team');
    await expect(loadRecipe(path)).rejects.toThrow(`no recipe '${path}'; did you mean '${path}.ts'?`);
    await writeFile(join(root, 'none.ts'), 'export const recipe = 1;');
    await expect(loadRecipe(join(root, 'none.ts'))).rejects.toThrow(/export default defineRecipe/);
    await writeFile(join(root, 'throws.ts'), 'throw new Error("oh no");');
    await expect(loadRecipe(join(root, 'throws.ts'))).rejects.toThrow(
      /throws\.ts cannot be loaded: oh no \(at .*throws\.ts:1:\d+\)$/,
    );
  });

  it.skipIf(process.platform === 'win32')('does not wait for a pipe, also if a recipe imports it', async () => {
    execFileSync('mkfifo', [join(root, 'pipe.ts')]);
    await writeFile(join(root, 'imports.ts'), "import './pipe.js';");
    for (const name of ['pipe.ts', 'imports.ts'])
      await expect(loadRecipe(join(root, name))).rejects.toThrow(/not a regular file '.*pipe\.ts'/);
  });

  it.skipIf(process.platform === 'win32')('says which characters no path to TypeScript may hold', async () => {
    const team = 'const steps: number = 1;\nexport default steps;';
    for (const folder of ['a?b', 'a\\b', 'a&b']) {
      await mkdir(join(root, folder));
      await writeFile(join(root, folder, 'team.ts'), team);
      const [sign] = /[?\\]/.exec(folder) ?? [];
      const expected =
        sign === undefined ? 'export default defineRecipe' : `a path with ${sign} cannot be loaded; rename`;
      await expect(loadRecipe(join(root, folder, 'team.ts')), folder).rejects.toThrow(expected);
    }
  });

  it('explains a module inside a CommonJS package', async () => {
    const refusal = 'Top-level await is currently not supported with the \\"cjs\\" output format';
    await writeFile(join(root, 'awaits.ts'), `throw new Error("${refusal}");`);
    await expect(loadRecipe(join(root, 'awaits.ts'))).rejects.toThrow(/npm pkg set type=module/);
  });

  it('names the line of the user code that threw, also in an imported file and for errors of this package', async () => {
    await writeFile(
      join(root, 'helper.ts'),
      'interface A { b: number }\n\nexport const fail = (a: A) => {\n  throw new Error("no " + a.b);\n};',
    );
    await writeFile(join(root, 'imports.ts'), 'import { fail } from "./helper.js";\nexport default fail({ b: 2 });');
    await expect(loadRecipe(join(root, 'imports.ts'))).rejects.toThrow(/no 2 \(at .*helper\.ts:4:\d+\)$/);
    const team = fileURLToPath(new URL('../../teams/team/team.js', import.meta.url));
    await writeFile(
      join(root, 'team.ts'),
      `import { defineTeam } from '${team}';\n\nexport default defineTeam({} as never);`,
    );
    await expect(loadRecipe(join(root, 'team.ts'))).rejects.toThrow(
      /expected a schema of zod.* \(at .*team\.ts:3:\d+\)$/,
    );
  });

  it.each(shippedRecipes())('resolves the shipped recipe %s', async (name) => {
    const { definition } = await loadRecipe(name);
    const recipe = resolveRecipe(definition, { name });
    expect(recipe.name).toBe(name);
    expect(JSON.parse(JSON.stringify(recipeJson(recipe)))).toEqual(recipeJson(recipe));
  });

  it('hashes the world of a shipped recipe with it', async () => {
    const files = await localFiles(fileURLToPath(new URL('../../../recipes/repair/recipe.ts', import.meta.url)));
    expect([...files.keys()].map((file) => basename(file)).sort()).toEqual([
      'commands.ts',
      'recipe.ts',
      'sandbox.ts',
      'world.ts',
    ]);
  });
});

describe('codeHash', () => {
  const write = (name: string, text: string) => writeFile(join(root, 'code', name), text);
  beforeEach(async () => {
    await mkdir(join(root, 'code'));
    await write('main.ts', 'import { a } from "./a.js";\nimport z from "zod";\nexport default a;');
    await write('a.ts', 'export * from \'./b.ts\';\nexport const c = () => import("./c");');
    await write('b.ts', 'export const a = 1;');
    await write('c.ts', 'import "./main.js";');
    await write('other.ts', 'export {}');
  });
  const hash = () => codeHash(join(root, 'code', 'main.ts'));

  it('changes with the file and with everything it imports', async () => {
    const hashes = new Set([await hash()]);
    for (const name of ['main.ts', 'a.ts', 'b.ts', 'c.ts']) {
      await write(
        name,
        `${name === 'main.ts' ? 'import "./a.js";' : ''}${name === 'a.ts' ? 'import "./b.js"; import("./c")' : ''}// changed`,
      );
      hashes.add(await hash());
    }
    expect(hashes.size).toBe(5);
  });

  it('does not change with other files or when the folder moves', async () => {
    const before = await hash();
    await write('other.ts', '// changed');
    expect(await hash()).toBe(before);
    await rename(join(root, 'code'), join(root, 'moved'));
    expect(await codeHash(join(root, 'moved', 'main.ts'))).toBe(before);
  });
});
