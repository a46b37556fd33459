/** A throw-away Python environment with SkyRL's server, made once for a list of pins and found again by its hash. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../src/core/errors.js';
import { cacheDirectory } from '../../src/tensor/native/build-cache.js';

const run = promisify(execFile);
const requirements = new URL('requirements.txt', import.meta.url).pathname;
/** The only pin that is installed with what it asks for: builds for GPUs ask for more than those for CPUs. */
const TORCH = 'torch==2.13.0';
/** Installing is mostly downloading; past this the tests are skipped. */
const INSTALL_TIMEOUT_MS = 8 * 60_000;

/** Why there is no environment. */
class Unavailable extends Error {}

/** The interpreter of the environment, or why there is none: no Python, no network ... */
export async function pythonEnvironment(): Promise<{ python: string } | { unavailable: string }> {
  try {
    const base = await findPython();
    const pins = await readFile(requirements, 'utf8');
    const key = createHash('sha256').update([base.version, TORCH, pins].join('\n')).digest('hex').slice(0, 16);
    const directory = join(cacheDirectory(), 'skyrl', key);
    const python = join(directory, 'bin', 'python');
    const complete = join(directory, 'complete');
    if (!existsSync(complete)) {
      await rm(directory, { recursive: true, force: true }); // what an interrupted installation left
      await mkdir(directory, { recursive: true });
      await install(base.python, directory, python);
      await writeFile(complete, '');
    }
    return { python };
  } catch (error) {
    if (error instanceof Unavailable) return { unavailable: error.message };
    throw error;
  }
}

/** `DRMAS_PYTHON`, else the first interpreter on the path that the pins have wheels for. */
async function findPython(): Promise<{ python: string; version: string }> {
  const chosen = process.env.DRMAS_PYTHON;
  const candidates = chosen ? [chosen] : ['python3.12', 'python3.11', 'python3'];
  const ask = 'import sys, platform, venv; print(*sys.version_info[:2], platform.machine(), sys.platform)';
  for (const python of candidates) {
    const version = await run(python, ['-c', ask]).then(
      ({ stdout }) => stdout.trim(),
      () => '',
    );
    if (/^3 1[12] /.test(version)) return { python, version };
  }
  throw new Unavailable(`no Python 3.11 or 3.12 with venv (tried ${candidates.join(', ')}); DRMAS_PYTHON names one`);
}

async function install(base: string, directory: string, python: string): Promise<void> {
  const started = performance.now();
  console.log(`installing SkyRL's server into ${directory} (once; 1.6 GB with a CPU build of torch)`);
  const quietly = ['-m', 'pip', 'install', '--quiet', '--no-compile', '--disable-pip-version-check'];
  const steps = [
    [base, '-m', 'venv', directory],
    [python, ...quietly, '--no-deps', '-r', requirements],
    [python, ...quietly, TORCH],
  ] as const;
  for (const [program, ...words] of steps) {
    const timeout = Math.max(1, INSTALL_TIMEOUT_MS - Math.round(performance.now() - started));
    await run(program, words, { timeout, maxBuffer: 2 ** 26 }).catch((error: unknown) => {
      const lines = messageOf(error).trim().split('\n');
      const reason = lines.findLast((line) => line.startsWith('ERROR')) ?? lines.at(-1);
      throw new Unavailable(`${words.slice(0, 3).join(' ')} failed: ${reason}`);
    });
  }
  console.log(`installed in ${Math.round((performance.now() - started) / 1000)} s`);
}
