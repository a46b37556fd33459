import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { temporaryRoot } from '../test/support/tiny-run.js';
import { LIBRARIES } from './support/libraries.js';

const repository = fileURLToPath(new URL('..', import.meta.url));
const root = temporaryRoot();

const filesBelow = async (directory: string) =>
  (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1));

it('writes the JavaScript of each source, and leaves nothing to take for a whole build', {
  tags: 'verify',
}, async () => {
  await mkdir(join(root, 'dist'));
  await writeFile(join(root, 'dist/.tsbuildinfo'), '{}');
  const tsx = join(repository, 'node_modules/tsx/dist/cli.mjs');
  await promisify(execFile)(process.execPath, [tsx, join(repository, 'scripts/compile.ts'), root]);
  const places = [
    ['src', 'dist/src'],
    ['recipes', 'dist/recipes'],
    ...Object.values(LIBRARIES).map((folder) => [`${folder}/src`, `${folder}/dist`] as const),
  ] as const;
  const sources = places.map(async ([folder, place]) =>
    (await filesBelow(join(repository, folder))).map((name) => join(place, name)),
  );
  const expected = (await Promise.all(sources))
    .flat()
    .filter((name) => /\.[cm]?ts$/.test(name) && !/\.(test|test-d|d)\.ts$/.test(name))
    .map((name) => name.replace(/ts$/, 'js'));
  expect((await filesBelow(root)).sort()).toEqual(expected.sort());
  expect(existsSync(join(repository, 'dist/dashboard/page.js'))).toBe(true);
});
