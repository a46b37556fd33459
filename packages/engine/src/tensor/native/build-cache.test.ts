import type * as fs from 'node:fs/promises';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { writableBuilds } from './build-cache.js';

let noexec: (path: string) => boolean = () => false;
vi.mock('node:fs/promises', async (load) => {
  const real = await load<typeof fs>();
  const access: typeof fs.access = async (path, mode) => {
    if (mode === real.constants.X_OK && noexec(String(path))) throw new Error('EACCES: permission denied');
    return real.access(path, mode);
  };
  return { ...real, access };
});

describe('builds of kernels', () => {
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-builds-'));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    noexec = () => false;
  });
  afterAll(() => rm(root, { recursive: true }));
  const builds = () => {
    vi.stubEnv('TMPDIR', join(root, 'temporary'));
    return writableBuilds({ DRMAS_CACHE: join(root, 'cache') });
  };

  it('go into the cache, and leave nothing of the trial there', async () => {
    expect(await builds()).toBe(join(root, 'cache', 'native'));
    expect(await readdir(join(root, 'cache', 'native'))).toEqual([]);
  });

  it.skipIf(process.platform === 'win32')('go elsewhere if no program runs in the cache', async () => {
    noexec = (path) => path.startsWith(join(root, 'cache'));
    expect(await builds()).toMatch(/temporary.drmas-\d+.native$/);
    noexec = () => true;
    await expect(builds()).rejects.toThrow(/^neither .*cache.* nor .*temporary.* can hold programs \(.*noexec\)$/);
  });
});
