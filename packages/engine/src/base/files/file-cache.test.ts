import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { nodeFiles } from '../platform/node-files.js';
import { contentHash } from './digests.js';
import { DirectoryCache } from './file-cache.js';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-cache-'));
});
afterEach(() => rm(root, { recursive: true }));

it('hashes equal values equally, whatever the order of their keys', () => {
  expect(contentHash({ a: 1, b: { c: [1, 2], d: 2 } })).toBe(contentHash({ b: { d: 2, c: [1, 2] }, a: 1 }));
  expect(contentHash({ a: [1, 2] })).not.toBe(contentHash({ a: [2, 1] }));
  expect(contentHash('x')).toMatch(/^[0-9a-f]{64}$/);
});

it('keeps what was stored first when two processes store at once', async () => {
  const cache = new DirectoryCache(nodeFiles, { root });
  expect(await cache.find('h')).toBeUndefined();
  const directory = await cache.store('h', async (slow) => {
    await writeFile(join(slow, 'weights'), 'slow');
    await cache.store('h', (fast) => writeFile(join(fast, 'weights'), 'fast'));
  });
  expect(await cache.find('h')).toBe(directory);
  expect(await readFile(join(directory, 'weights'), 'utf8')).toBe('fast');
  expect(await readdir(join(root, 'warmstarts'))).toEqual(['h']);
});

it('keeps one of two that are stored at the same moment', async () => {
  const cache = new DirectoryCache(nodeFiles, { root });
  const store = (text: string) => cache.store('h', (directory) => writeFile(join(directory, 'weights'), text));
  const [one, other] = await Promise.all([store('same'), store('same')]);
  expect(other).toBe(one);
  expect(await readdir(join(root, 'warmstarts'))).toEqual(['h']);
});

it('stores nothing when making it fails', async () => {
  const cache = new DirectoryCache(nodeFiles, { root });
  await expect(cache.store('h', () => Promise.reject(new Error('interrupted')))).rejects.toThrow('interrupted');
  expect(await readdir(join(root, 'warmstarts'))).toEqual([]);
});
