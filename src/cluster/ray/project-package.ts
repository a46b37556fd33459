/** The files of a project that a job needs: the recipe's file, its local imports, its task files, and the lockfile. */

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize, relative, sep } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { RunError } from '@drmas/engine/errors';
import { shellWord } from '@drmas/engine/host';
import { packageVersion } from '@drmas/engine/platform';
import { localFiles } from '../../method/recipe-files.js';

export interface ProjectPackage {
  /** The package's name in Ray, which follows from its content. */
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The recipe in the package: a path, or the name of a recipe that ships. */
  readonly recipe: string;
  /** The shell command that starts drmas in it. */
  readonly command: string;
}

interface ProjectOptions {
  /** The command that starts drmas on the nodes; by default npm installs the lockfile's packages, or this version. */
  readonly command?: string | undefined;
  /** An optional package that the nodes need too. */
  readonly peer?: string | undefined;
  /** The files of the recipe's tasks. Those with relative paths are packed, for jobs start in the package's folder. */
  readonly taskFiles?: readonly string[];
}

const MANIFESTS = ['package.json', 'package-lock.json'];

/**
 * @param source A recipe that ships, or the absolute path of a file
 * @throws RunError if the lockfile lacks the optional package, or a task file's relative path leads out of this folder
 */
export async function projectPackage(
  source: string,
  { command, peer, taskFiles = [] }: ProjectOptions = {},
): Promise<ProjectPackage> {
  const files = new Map<string, Uint8Array>([
    ['drmas.json', Buffer.from(JSON.stringify({ version: packageVersion() }))],
  ]);
  let recipe = source;
  if (isAbsolute(source)) {
    const local = await localFiles(source);
    const manifest = manifestAbove(dirname(source));
    const root = commonFolder([
      ...local.keys(),
      ...(manifest === undefined ? [] : [join(manifest, MANIFESTS[0] ?? '')]),
    ]);
    const inside = (path: string) => relative(root, path).split(sep).join('/');
    for (const [path, text] of local) files.set(inside(path), Buffer.from(text));
    for (const name of manifest === undefined ? [] : MANIFESTS) {
      const path = join(manifest ?? '', name);
      if (existsSync(path)) files.set(inside(path), await readFile(path));
    }
    recipe = inside(source);
  }
  for (const path of taskFiles.filter((path) => !isAbsolute(path) && existsSync(path))) {
    const name = normalize(path).split(sep).join('/');
    if (name.startsWith('../'))
      throw new RunError(
        `no node finds the task file ${path}: give its absolute path, in a folder that all nodes share`,
      );
    files.set(name, await readFile(path));
  }
  const lock = [...files.keys()].find((path) => path.endsWith('package-lock.json'));
  if (command === undefined && lock !== undefined && peer !== undefined && !locks(files.get(lock), peer))
    throw new RunError(
      `the nodes install the packages of ${lock}, which lacks ${peer}; add it with npm install ${peer}`,
    );
  if (command === undefined && lock !== undefined) files.set(INSTALLER, Buffer.from(installerSource));
  const packages = [`drmas@${packageVersion()}`, ...(peer === undefined ? [] : [peer])];
  const hash = createHash('sha256');
  for (const [path, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) hash.update(`${path}\0`).update(bytes);
  return {
    name: `_ray_pkg_${hash.digest('hex').slice(0, 32)}.zip`,
    bytes: zipArchive(files),
    recipe,
    command: command ?? (lock === undefined ? fromRegistry(packages) : installed(dirname(lock))),
  };
}

const fromRegistry = (packages: readonly string[]) =>
  `npx --yes ${packages.map((name) => `--package ${shellWord(name)}`).join(' ')} drmas`;

const locks = (lockfile: Uint8Array | undefined, name: string): boolean =>
  new TextDecoder().decode(lockfile).includes(`"node_modules/${name}"`);

/** Installs the packages of the lockfile's folder, and starts drmas from them. */
const installed = (folder: string) =>
  `node ${INSTALLER} ${shellWord(folder)} && ${shellWord(`./${folder}/node_modules/.bin/drmas`)}`;

/** The nearest folder with a lockfile, at most three levels above the recipe. */
function manifestAbove(folder: string): string | undefined {
  let here = folder;
  for (let i = 0; i < 4; i++) {
    if (MANIFESTS.every((name) => existsSync(join(here, name)))) return here;
    here = dirname(here);
  }
  return undefined;
}

function commonFolder(paths: readonly string[]): string {
  const folders = paths.map((path) => dirname(path).split(sep));
  const [first = []] = folders;
  let shared = first.length;
  for (const folder of folders) while (folder.slice(0, shared).join(sep) !== first.slice(0, shared).join(sep)) shared--;
  return first.slice(0, shared).join(sep) || sep;
}

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
import { isAbsolute, join } from 'node:path';

const folder = process.argv[2] ?? '.';
const files = ['package.json', 'package-lock.json'];
const hash = createHash('sha256').update([process.platform, process.arch, process.versions.modules].join(' '));
for (const name of files) hash.update('\\0').update(readFileSync(join(folder, name)));
process.on('uncaughtException', (error) => {
  console.error('the packages of this project are not on this node: ' + error.message);
  process.exit(1);
});

function fail(message) {
  throw new Error(message);
}

function home() {
  const known = homedir(); // throws for a user whom the system does not know
  return isAbsolute(known) ? known : fail('the home directory is unknown; set DRMAS_CACHE');
}

const caches = process.env.DRMAS_CACHE || join(home(), '.cache', 'drmas');
const place = join(caches, 'packages', hash.digest('hex').slice(0, 32));

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

// A zip archive of files in memory, deflated, without times: the same files give the same bytes.

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
const UTF8_NAMES = 0x0800;
const DEFLATED = 8;
/** 1 January 1980, the first date that the format has. */
const DATE = 0x21;

/** Packs files by their paths, with slashes, in the order of the paths. Format: PKWARE's APPNOTE 6.3, without zip64. */
function zipArchive(files: ReadonlyMap<string, Uint8Array>): Uint8Array<ArrayBuffer> {
  const [parts, directory]: [Buffer[], Buffer[]] = [[], []];
  let offset = 0;
  for (const [path, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const name = Buffer.from(path);
    const data = deflateRawSync(bytes);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(VERSION, 0);
    common.writeUInt16LE(UTF8_NAMES, 2);
    common.writeUInt16LE(DEFLATED, 4);
    common.writeUInt16LE(DATE, 8);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    parts.push(word(LOCAL), common, name, data);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    const madeBy = Buffer.alloc(2);
    madeBy.writeUInt16LE(VERSION);
    directory.push(word(CENTRAL), madeBy, common, place, name);
    offset += 4 + common.length + name.length + data.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.size, 4);
  end.writeUInt16LE(files.size, 6);
  end.writeUInt32LE(listed.length, 8);
  end.writeUInt32LE(offset, 12);
  return Uint8Array.from(Buffer.concat([...parts, listed, word(END), end]));
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
