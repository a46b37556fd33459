/**
 * The program with which a job starts on a node without packages: npm installs the lockfile's packages once per
 * lockfile.
 */

/** The name of the program below in a project's package. */
export const INSTALLER = 'drmas-install.mjs';

/**
 * A program that needs only Node: `node drmas-install.mjs FOLDER` adds `node_modules` to the folder, which has
 * package.json and package-lock.json. The packages are in the cache directory, under a hash of both files, the platform
 * and the version of Node. Concurrent jobs of one node install into a folder each; the first complete one stays.
 */
export const installerSource = `import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const folder = process.argv[2] ?? '.';
const files = ['package.json', 'package-lock.json'];
const hash = createHash('sha256').update([process.platform, process.arch, process.versions.modules].join(' '));
for (const name of files) hash.update('\\0').update(readFileSync(join(folder, name)));
const caches = process.env.DRMAS_CACHE || join(homedir(), '.cache', 'drmas');
const place = join(caches, 'packages', hash.digest('hex').slice(0, 32));

process.on('uncaughtException', (error) => {
  console.error('the packages of this project are not on this node: ' + error.message);
  process.exit(1);
});

function fail(message) {
  throw new Error(message);
}

if (!existsSync(place)) {
  const temporary = place + '.tmp-' + randomBytes(6).toString('hex');
  try {
    mkdirSync(temporary, { recursive: true });
    for (const name of files) copyFileSync(join(folder, name), join(temporary, name));
    const words = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];
    const npm = spawnSync('npm', words, { cwd: temporary, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    if (npm.error) fail('cannot start npm (' + npm.error.message + '); nodes need Node with npm, or --ray-command');
    if (npm.status !== 0) fail('npm ci ended with ' + npm.status + ': ' + npm.stderr.trim().split('\\n').slice(0, 4).join(' '));
    renameSync(temporary, place);
  } catch (error) {
    if (!existsSync(place)) throw error; // else another job was faster
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}
try {
  symlinkSync(join(place, 'node_modules'), join(folder, 'node_modules'), 'dir');
} catch (error) {
  if (error.code !== 'EEXIST') throw error;
}
`;
