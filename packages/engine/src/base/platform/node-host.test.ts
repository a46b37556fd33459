import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import os, { availableParallelism, tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ArgumentError } from '../core/errors.js';
import { cacheDirectory, configDirectory } from './cache-directory.js';
import { kernelThreads, nodeHost } from './node-host.js';

/** Gives this machine another number of cores, until the test's end. */
function withCores(cores: number): void {
  vi.spyOn(os, 'availableParallelism').mockReturnValue(cores);
  syncBuiltinESMExports();
}

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

describe('nodeHost', () => {
  it('is this process by default', async () => {
    const host = nodeHost();
    expect([host.threads, host.signal.aborted]).toEqual([availableParallelism(), false]);
    expect(await host.protect(async () => 7)).toBe(7);
    expect(() => host.notify('nobody listens')).not.toThrow();
    const { signal } = new AbortController();
    expect(nodeHost({ threads: 3, signal })).toMatchObject({ threads: 3, signal });
  });

  it('has at most 256 threads on a machine with more cores, and one on a machine with one', () => {
    withCores(384);
    expect([nodeHost().threads, kernelThreads(), kernelThreads(undefined, 1)]).toEqual([256, 256, 256]);
    withCores(1);
    expect([kernelThreads(), kernelThreads(undefined, 1)]).toEqual([1, 1]);
  });

  it('turns warnings into notices if no listener takes them', () => {
    const notices: string[] = [];
    nodeHost({ notify: (message) => notices.push(message) }).warn('code', 'went wrong');
    expect(notices).toEqual(['went wrong']);
  });

  it.each([[0], [-1], [1.5], [Number.NaN], [2000]])('refuses %d threads', (threads) => {
    expect(() => nodeHost({ threads })).toThrow(ArgumentError);
  });
});

it('has no directories that depend on the working directory', () => {
  for (const name of ['HOME', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'LOCALAPPDATA', 'APPDATA', 'USERPROFILE'])
    vi.stubEnv(name, 'relative');
  try {
    for (const directory of [cacheDirectory({}), configDirectory()])
      expect(isAbsolute(directory), directory).toBe(true);
  } finally {
    vi.unstubAllEnvs();
  }
});

it('has directories for a user whom the system does not know, as in a container', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'drmas-nobody-'));
  try {
    const unknown = `const os = require('os');
      os.homedir = os.userInfo = () => { throw new Error('ENOENT') };
      require('module').syncBuiltinESMExports();`;
    await writeFile(join(folder, 'unknown.cjs'), unknown);
    const program = `import { cacheDirectory, configDirectory } from './cache-directory.js';
      import { writableBuilds } from '../../tensor/native/build-cache.js';
      console.log(cacheDirectory({}), configDirectory(), await writableBuilds({ DRMAS_CACHE: '/dev/null' }));`;
    const stdin = { contents: program, resolveDir: fileURLToPath(new URL('.', import.meta.url)) };
    const outfile = join(folder, 'program.mjs');
    const tsconfig = fileURLToPath(new URL('../../../../../tsconfig.json', import.meta.url));
    await build({ stdin, bundle: true, platform: 'node', format: 'esm', outfile, tsconfig });
    const env = { PATH: process.env.PATH, TMPDIR: folder };
    const { stdout, stderr } = spawnSync(process.execPath, ['-r', join(folder, 'unknown.cjs'), outfile], {
      env,
      encoding: 'utf8',
    });
    expect(stdout, stderr).toMatch(/^\/.*drmas \/.*drmas \/.*drmas-\d+.native\n$/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
