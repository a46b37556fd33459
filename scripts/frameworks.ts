/**
 * Tests teams of agent frameworks with the packages as they are on npm. Those packages are installed in separate
 * folders, so that `npm ci` of the project stays small: test/frameworks/node20 for the Node that runs this,
 * test/frameworks/node24 for frameworks that need a newer one, which also comes from npm. Each is installed by its
 * lockfile when that has changed. Arguments behind `--` are passed on to vitest.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['node20', 'node24'];

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
  if (existsSync(join(folder, 'node_modules', 'node'))) run('npm', ['rebuild', 'node', '--silent'], folder);
  writeFileSync(stamp, lock);
}

for (const name of FOLDERS) {
  const folder = join(root, 'test/frameworks', name);
  install(folder);
  run(process.execPath, [join(root, 'node_modules/typescript-7/bin/tsc'), '-p', folder, '--noEmit']);
  const carried = join(folder, 'node_modules/.bin/node');
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const filter = ['--config', 'test/frameworks/vitest.config.ts', `test/frameworks/${name}/`];
  run(existsSync(carried) ? carried : process.execPath, [vitest, 'run', ...filter, ...process.argv.slice(2)]);
}
