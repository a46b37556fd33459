import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ModelCache } from './model-cache.js';

const names = { symlink: vi.fn<typeof fs.symlink>(), link: vi.fn<typeof fs.link>() };

const commit = 'a'.repeat(40);
const refusal = (code: string) => Object.assign(new Error(`${code}: no`), { code });

let root: string;
let cache: ModelCache;
beforeEach(async () => {
  root = await fs.mkdtemp(join(tmpdir(), 'drmas-links-'));
  cache = new ModelCache(root, { name: 'org/name', revision: 'main' }, names);
  names.symlink.mockImplementation(fs.symlink);
  names.link.mockImplementation(fs.link);
  await fs.mkdir(join(cache.directory, 'blobs'), { recursive: true });
  await fs.writeFile(cache.blob('b1'), 'weights');
});
afterEach(async () => {
  names.symlink.mockReset();
  names.link.mockReset();
  await fs.rm(root, { recursive: true });
});

const linked = async () => {
  await cache.link(commit, 'model.safetensors', 'b1');
  const path = join(cache.snapshot(commit), 'model.safetensors');
  return { text: await fs.readFile(path, 'utf8'), status: await fs.lstat(path), blob: await fs.stat(cache.blob('b1')) };
};

describe('a file of a snapshot', () => {
  it('is a link to its blob', async () => {
    const { text, status } = await linked();
    expect([text, status.isSymbolicLink()]).toEqual(['weights', true]);
  });

  it('is a second name of it where nobody may make links, as on Windows', async () => {
    names.symlink.mockRejectedValue(refusal('EPERM'));
    const { text, status, blob } = await linked();
    expect([text, status.isSymbolicLink(), status.ino]).toEqual(['weights', false, blob.ino]);
    expect(await cache.files(commit)).toEqual(new Set(['model.safetensors']));
    expect((await linked()).text).toBe('weights'); // and takes the place of one that is there
  });

  it('is a copy where there are no second names either', async () => {
    names.symlink.mockRejectedValue(refusal('EPERM'));
    names.link.mockRejectedValue(refusal('EPERM'));
    const { text, status, blob } = await linked();
    expect(text).toBe('weights');
    expect(status.ino).not.toBe(blob.ino);
  });

  it('is not there where the disk is full, and leaves nothing behind', async () => {
    names.symlink.mockRejectedValue(refusal('ENOSPC'));
    await expect(linked()).rejects.toThrow('ENOSPC');
    expect(await fs.readdir(cache.snapshot(commit))).toEqual([]);
  });
});
