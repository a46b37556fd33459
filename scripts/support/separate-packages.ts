/** Packages that are installed in a folder of their own, so that `npm ci` of the project stays small. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Runs a program in a folder, and ends this one with its exit code if that is not 0. */
export function runOrExit(command: string, args: readonly string[], folder: string): void {
  const { status, error } = spawnSync(command, args, { cwd: folder, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

/** Installs the packages of a folder's lockfile, without their scripts, unless they are there already. */
export function installLocked(folder: string): void {
  const lock = createHash('sha256')
    .update(readFileSync(join(folder, 'package-lock.json')))
    .digest('hex');
  const stamp = join(folder, 'node_modules', '.drmas-lock');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  runOrExit('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'], folder);
  if (existsSync(join(folder, 'node_modules', 'node'))) runOrExit('npm', ['rebuild', 'node', '--silent'], folder);
  writeFileSync(stamp, lock);
}
