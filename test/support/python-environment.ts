/** Throw-away Python environments, made once for a list of pins each and found again by its hash. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { messageOf } from '@drmas/engine/errors';
import { cacheDirectory } from '@drmas/engine/platform';
import { stopwatch } from './time-and-chance.js';

const run = promisify(execFile);
/** Installing is mostly downloading; past this the tests are skipped. */
const INSTALL_TIMEOUT_MS = 8 * 60_000;

/** Why there is no environment. */
export class Unavailable extends Error {}

export interface EnvironmentOptions {
  /** The folder of its kind below the cache directory. */
  readonly name: string;
  /** The file of pins, which are installed without their dependencies. */
  readonly requirements: URL;
  /** Pins that are installed with their dependencies, because these differ between machines. */
  readonly further?: readonly string[];
  /** The least minor version of Python 3 that the pins allow. Default 11. */
  readonly least?: 12;
  /** The name and the size of the installation, for the person who waits. */
  readonly what: string;
}

/**
 * A folder below the cache directory, made once for each list of parts. An interrupted installation begins anew.
 * @throws the error of `install`
 */
export async function installedOnce(
  name: string,
  parts: readonly string[],
  install: (folder: string) => Promise<void>,
): Promise<string> {
  const key = createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 16);
  const folder = join(cacheDirectory(), name, key);
  const complete = join(folder, 'complete');
  if (existsSync(complete)) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await install(folder);
  await writeFile(complete, '');
  return folder;
}

/** The interpreter of the environment, or why there is none: no Python, no network ... */
export async function pythonEnvironment(
  options: EnvironmentOptions,
): Promise<{ python: string } | { unavailable: string }> {
  const { name, requirements, further = [], least = 11 } = options;
  try {
    const base = await findPython(least);
    const pins = await readFile(requirements, 'utf8');
    const pythonIn = (directory: string) => join(directory, 'bin', 'python');
    const directory = await installedOnce(name, [base.version, ...further, pins], (place) =>
      install(base.python, place, pythonIn(place), options),
    );
    return { python: pythonIn(directory) };
  } catch (error) {
    if (error instanceof Unavailable) return { unavailable: error.message };
    throw error;
  }
}

/** `DRMAS_PYTHON`, else the first interpreter on the path that the pins have wheels for. */
async function findPython(least: number): Promise<{ python: string; version: string }> {
  const chosen = process.env.DRMAS_PYTHON;
  const candidates = chosen ? [chosen] : ['python3.12', ...(least > 11 ? await pyenvs() : ['python3.11']), 'python3'];
  const ask = 'import sys, platform, venv; print(*sys.version_info[:2], platform.machine(), sys.platform)';
  for (const python of candidates) {
    const version = await run(python, ['-c', ask]).then(
      ({ stdout }) => stdout.trim(),
      () => '',
    );
    if (/^3 1[12] /.test(version) && Number(version.split(' ')[1]) >= least) return { python, version };
  }
  const versions = least > 11 ? '3.12' : '3.11 or 3.12';
  throw new Unavailable(`no Python ${versions} with venv (tried ${candidates.join(', ')}); DRMAS_PYTHON names one`);
}

/** The interpreters of pyenv, whose commands on the path refuse every version that is not the chosen one. */
async function pyenvs(): Promise<string[]> {
  const versions = join(homedir(), '.pyenv', 'versions');
  const names = await readdir(versions).catch(() => []);
  return names.filter((name) => name.startsWith('3.12.')).map((name) => join(versions, name, 'bin', 'python'));
}

async function install(
  base: string,
  directory: string,
  python: string,
  { requirements, further = [], what }: EnvironmentOptions,
): Promise<void> {
  const seconds = stopwatch();
  console.log(`installing ${what} into ${directory} (once)`);
  const quietly = ['-m', 'pip', 'install', '--quiet', '--no-compile', '--disable-pip-version-check'];
  const steps = [
    [base, '-m', 'venv', directory],
    [python, ...quietly, '--no-deps', '-r', fileURLToPath(requirements)],
    ...(further.length > 0 ? [[python, ...quietly, ...further]] : []),
  ];
  for (const [program = '', ...words] of steps) {
    const timeout = Math.max(1, INSTALL_TIMEOUT_MS - Math.round(1000 * seconds()));
    await run(program, words, { timeout, maxBuffer: 2 ** 26 }).catch((error: unknown) => {
      const lines = messageOf(error).trim().split('\n');
      const reason = lines.findLast((line) => line.startsWith('ERROR')) ?? lines.at(-1);
      throw new Unavailable(`${words.slice(0, 3).join(' ')} failed: ${reason}`);
    });
  }
  console.log(`installed in ${Math.round(seconds())} s`);
}
