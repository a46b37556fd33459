import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { RecipeDefinition } from '../src/method/recipe/define.js';
import { resolveRecipe } from '../src/runs/composition/resolve-recipe.js';

const documents = join(import.meta.dirname, '../docs');
// In the clone, whose configuration resolves `drmas`.
const directory = mkdtempSync(join(import.meta.dirname, '.recipes-of-documents-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** The whole recipes of the pages, which `npm run check -- docs` compiles and never runs, as files. */
const recipes = readdirSync(documents)
  .filter((page) => page.endsWith('.md'))
  .flatMap((page) => {
    const blocks = readFileSync(join(documents, page), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```$/gm);
    return [...blocks].flatMap(({ 1: code = '' }, i) => {
      if (!code.includes('export default defineRecipe')) return [];
      const file = join(directory, page, `${i}.ts`);
      mkdirSync(join(directory, page), { recursive: true });
      writeFileSync(file, code);
      return [{ name: `${page}, block ${i + 1}`, file }];
    });
  });

describe('the recipes in the documents', () => {
  it('are there', () => {
    expect(recipes.length).toBeGreaterThan(5);
  });

  it.each(recipes)('have settings that a run accepts: $name', async ({ file }) => {
    const { default: definition } = (await import(file)) as { readonly default: RecipeDefinition };
    expect(Object.keys(resolveRecipe(definition).assign)).not.toEqual([]);
  });
});
