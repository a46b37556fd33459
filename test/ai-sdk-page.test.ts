/** The files of docs/ai-sdk.md. `npm run verify -- package` follows the whole page. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { typedPage } from '../scripts/support/typed-page.js';
import type { RecipeDefinition } from '../src/method/recipe/define.js';
import { playScripted } from '../src/runs/testing/play-scripted.js';

const page = readFileSync(join(import.meta.dirname, '../docs/ai-sdk.md'), 'utf8');
// In the clone, whose configuration resolves `drmas`.
const folder = mkdtempSync(join(import.meta.dirname, '.ai-sdk-page-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the page about an agent of AI SDK', () => {
  // The first import of AI SDK takes a while on a busy machine.
  it('has a program that plays a task', { timeout: 600_000 }, async () => {
    for (const [, name = '', code = ''] of page.matchAll(/^```ts.*\n\/\/ (\S+)\n([\s\S]*?)^```$/gm))
      writeFileSync(join(folder, name), code);
    const { default: recipe } = (await import(join(folder, 'recipe.mts'))) as { readonly default: RecipeDefinition };
    const look = { toolCalls: [{ name: 'look', arguments: { city: 'Oslo' } }] };
    const lines = { reader: ['{"city":"Oslo"}'], packer: [look, 'coat'] };
    const task = { message: 'To Oslo.', answer: 'coat' };
    const { score, turns } = await playScripted(recipe.input.team as never, task as never, lines as never);
    expect([score.team, turns.length]).toEqual([1, 3]);
  });

  it('is a script: its files, and its commands without installing', () => {
    const script = typedPage(page, 'link the packages');
    expect(script).toMatch(/^set -ex\nmkdir travel && cd travel\nnpm init -y\nlink the packages\n/);
    expect(script).toMatch(/\ncat > 'recipe\.mts' <<'END_OF_FILE'\n\/\/ recipe\.mts\nimport /);
    expect(script).not.toContain('npm install');
    expect(script.match(/^npx drmas \w+/gm)).toEqual([
      'npx drmas demonstrate',
      ...['npx drmas train', 'npx drmas evaluate', 'npx drmas serve'],
    ]);
  });
});
