import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeFiles, removeStale } from '@drmas/engine/platform';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { drmas } from '../../../../test/support/command-line.js';
import { timeOfDay } from '../../../../test/support/time-and-chance.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-cache-command-'));
  for (const [kind, name, bytes] of [
    ['native', 'abc', 1500],
    ['warmstarts', 'one', 20],
    ['warmstarts', 'two', 30],
  ] as const) {
    await mkdir(join(root, kind, name), { recursive: true });
    await writeFile(join(root, kind, name, 'file'), 'x'.repeat(bytes));
  }
  await mkdir(join(root, 'other'));
});
afterAll(() => rm(root, { recursive: true }));

const environment = () => ({ environment: { DRMAS_CACHE: root } });

it('shows what is cached with its size, and clears one kind or all of drmas', async () => {
  const { out } = await drmas(['doctor', 'cache'], environment());
  expect(out).toBe(`${root}\n  native        1.5 kB  compiled kernels: 1\n  warmstarts      50 B  warm starts: 2\n`);
  expect(JSON.parse((await drmas(['doctor', 'cache', '--json'], environment())).out).kinds).toContainEqual({
    kind: 'warmstarts',
    entries: 2,
    bytes: 50,
  });
  expect(await drmas(['doctor', 'cache', 'clear', 'hub'], environment())).toMatchObject({
    code: 2,
    err: expect.stringMatching(/there is no cache 'hub'; expected native or warmstarts/),
  });
  expect((await drmas(['doctor', 'cache', 'clear', 'warmstarts'], environment())).out).toBe(
    'removed warmstarts: 50 B\n',
  );
  expect(await readdir(root)).toEqual(['native', 'other']);
  expect((await drmas(['doctor', 'cache', 'clear'], environment())).out).toBe('removed native: 1.5 kB\n');
  expect(await readdir(root)).toEqual(['other']);
});

it('what a killed process left is removed after a day, and nothing else', async () => {
  const place = join(root, 'stale');
  for (const name of ['.tmp-old', '.tmp-new', 'kept']) await mkdir(join(place, name), { recursive: true });
  const long = new Date(timeOfDay() - 25 * 60 * 60 * 1000);
  for (const name of ['.tmp-old', 'kept']) await utimes(join(place, name), long, long);
  await removeStale(nodeFiles, place, '.tmp-');
  expect(await readdir(place)).toEqual(['.tmp-new', 'kept']);
  await removeStale(nodeFiles, join(root, 'missing'), '.tmp-');
});
