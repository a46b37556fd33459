/**
 * `npm start` in a clone: compiles the sources of the packages to JavaScript in their `dist/`, and builds the page of
 * the dashboard if its sources are newer. It checks no types and writes no declarations, so it takes an eighth of the
 * processor time of `npm run build`, which the package is made of.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildDashboard } from '../test/build-dashboard.js';
import { LIBRARIES } from './support/libraries.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const compiler = join(root, 'node_modules/typescript-7/bin/tsc');

const ONLY_JAVASCRIPT = ['--noCheck', '--declaration', 'false', '--declarationMap', 'false', '--sourceMap', 'false'];
const ALL_FILES = ['--incremental', 'false', '--tsBuildInfoFile', 'null'];

/**
 * Compiles one package of the workspace.
 * @param folder Its folder, from the root of the repository
 * @returns the compiler's exit code
 */
async function compile(folder: string, out: string): Promise<number> {
  const outDir = join(out, folder, 'dist');
  // `npm run build` would take the files that are written here for its own.
  rmSync(join(outDir, '.tsbuildinfo'), { force: true });
  const words = ['-p', join(folder, 'tsconfig.build.json'), ...ONLY_JAVASCRIPT, ...ALL_FILES, '--outDir', outDir];
  const child = spawn(process.execPath, [compiler, ...words], { cwd: root, stdio: 'inherit' });
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}

/** Where the packages are written, each into `dist` of its folder: the repository, or a place of a test. */
const out = process.argv[2] ?? root;
const folders = [...Object.values(LIBRARIES), '.'];
const [codes] = await Promise.all([Promise.all(folders.map((folder) => compile(folder, out))), buildDashboard()]);
process.exitCode = Math.max(...codes);
