/**
 * Tests teams of agent frameworks with the packages as they are on npm. Those packages lie in folders of their own, so
 * that `npm ci` of the project stays small; each is installed by its lockfile when that has changed. What stands behind
 * `--` goes on to vitest.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['node20'];

function run(command: string, args: readonly string[], cwd = root): void {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

/** Installs a folder's packages, unless they are there already. */
function install(folder: string): void {
  const lock = createHash('sha256')
    .update(readFileSync(join(folder, 'package-lock.json')))
    .digest('hex');
  const stamp = join(folder, 'node_modules', '.drmas-lock');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'], folder);
  writeFileSync(stamp, lock);
}

for (const name of FOLDERS) {
  const folder = join(root, 'test/frameworks', name);
  install(folder);
  run(join(root, 'node_modules/.bin/tsc'), ['-p', folder, '--noEmit']);
  const vitest = ['vitest', 'run', '--config', 'test/frameworks/vitest.config.ts', `test/frameworks/${name}/`];
  run('npx', [...vitest, ...process.argv.slice(2)]);
}
