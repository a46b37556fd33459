/** Folders with packages of npm, installed once for a list of pins each and found again by its hash. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '@drmas/engine/errors';
import { installedOnce, Unavailable } from './python-environment.js';

const run = promisify(execFile);
const INSTALL_TIMEOUT_MS = 8 * 60_000;

export interface NpmEnvironmentOptions {
  /** The folder of its kind below the cache directory. */
  readonly name: string;
  /** The version of each package. */
  readonly packages: Readonly<Record<string, string>>;
  /** The packages whose installation scripts run. */
  readonly scripts: readonly string[];
  /** The kinds of dependencies that are left out. Default: none. */
  readonly omit?: readonly ('optional' | 'peer')[];
  /** The names and the size of the installation, for the person who waits. */
  readonly what: string;
}

/** The folder whose `node_modules` has the packages, or why there is none. */
export async function npmEnvironment(
  options: NpmEnvironmentOptions,
): Promise<{ readonly folder: string } | { readonly unavailable: string }> {
  const { name, packages, scripts, omit = [], what } = options;
  const manifest = JSON.stringify({ private: true, dependencies: packages });
  const words = omit.map((kind) => `--omit=${kind}`);
  try {
    const folder = await installedOnce(name, [manifest, ...words], async (place) => {
      console.log(`installing ${what} into ${place} (once)`);
      await writeFile(join(place, 'package.json'), manifest);
      const quietly = { cwd: place, timeout: INSTALL_TIMEOUT_MS };
      const npm = (...args: string[]) =>
        run('npm', args, quietly).catch((error: unknown) => {
          throw new Unavailable(messageOf(error));
        });
      await npm('install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', ...words);
      await npm('rebuild', ...scripts, '--silent');
    });
    return { folder };
  } catch (error) {
    if (error instanceof Unavailable) return { unavailable: error.message };
    throw error;
  }
}
