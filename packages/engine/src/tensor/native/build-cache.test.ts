import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { writableBuilds } from './build-cache.js';

describe('builds of kernels', () => {
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-builds-'));
  });
  afterEach(() => vi.unstubAllEnvs());
  afterAll(() => rm(root, { recursive: true }));
  const builds = (canRun?: (program: string) => Promise<void>) => {
    vi.stubEnv('TMPDIR', join(root, 'temporary'));
    return writableBuilds({ DRMAS_CACHE: join(root, 'cache') }, canRun);
  };

  it('go into the cache, and leave nothing of the trial there', async () => {
    expect(await builds()).toBe(join(root, 'cache', 'native'));
    expect(await readdir(join(root, 'cache', 'native'))).toEqual([]);
  });

  it.skipIf(process.platform === 'win32')('go elsewhere if no program runs in the cache', async () => {
    const refused = async (program: string) => {
      throw new Error(`EACCES: permission denied, access '${program}'`);
    };
    const outside = (program: string) =>
      program.startsWith(join(root, 'cache')) ? refused(program) : Promise.resolve();
    expect(await builds(outside)).toMatch(/temporary.drmas-\d+.native$/);
    await expect(builds(refused)).rejects.toThrow(
      /^neither .*cache.* nor .*temporary.* can hold programs \(.*noexec\)$/,
    );
  });
});
