import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { ResolveFnOutput, ResolveHookContext } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resolve, resolveSync } from './package-hook.js';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drmas-hook-'));
  writeFileSync(join(folder, 'esm.js'), "// a module\nimport 'node:fs';\n");
  writeFileSync(join(folder, 'cjs.js'), "const fs = require('node:fs');\n");
});
afterAll(() => rm(folder, { recursive: true }));

const context = (...conditions: string[]) =>
  ({ conditions, importAttributes: {}, parentURL: 'file:///somewhere/team.ts' }) as unknown as ResolveHookContext;

/** Resolves files of the folder, and packages from the running package alone. */
function next(specifier: string, { parentURL }: Partial<ResolveHookContext> = {}): ResolveFnOutput {
  if (specifier.startsWith('./'))
    return { url: new URL(specifier, pathToFileURL(join(folder, 'x'))).href, format: 'commonjs' };
  if (parentURL?.includes('package-hook') !== true) throw new Error(`Cannot find package '${specifier}'`);
  return { url: `file:///ours/${specifier}`, format: 'module' };
}

describe('the hooks of the loader thread and of the main thread', () => {
  it.each([
    ['zod', { url: 'file:///ours/zod', format: 'module' }],
    ['zod/v4', { url: 'file:///ours/zod/v4', format: 'module' }],
    ['./team.ts', { format: 'module' }],
    ['./team.mts?x=1', { format: 'module' }],
    ['./esm.js', { format: 'module' }],
    ['./cjs.js', { format: 'commonjs' }],
    ['@drmas/engine/package.json', undefined],
    ['zodiac', undefined],
    ['other', undefined],
  ])('resolve %s alike', async (specifier, expected) => {
    const ofThread = resolve(specifier, context('node', 'import'), next);
    const inMain = () => resolveSync(specifier, context('node', 'import'), next);
    if (expected === undefined) {
      await expect(ofThread).rejects.toThrow(`Cannot find package '${specifier}'`);
      return expect(inMain).toThrow(`Cannot find package '${specifier}'`);
    }
    expect(await ofThread).toMatchObject(expected);
    expect(inMain()).toEqual(await ofThread);
  });

  it('leave what is required as it is', () => {
    expect(resolveSync('./esm.js', context('node', 'require'), next).format).toBe('commonjs');
    expect(() => resolveSync('zod', context('node', 'require'), next)).toThrow('Cannot find package');
  });
});
