/** What a job needs of a project: the recipe's file, its local imports, and what installs the packages of both. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';
import { RunError } from '../../core/errors.js';
import { shellWord } from '../../core/format.js';
import { packageVersion } from '../../platform/package-version.js';
import { localFiles } from '../../recipe/code-hash.js';
import { INSTALLER, installerSource } from './node-packages.js';
import { zipArchive } from './zip-archive.js';

export interface ProjectPackage {
  /** Ray's name of it, which follows from its content. */
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** What names the recipe in it: a path, or a recipe that ships. */
  readonly recipe: string;
  /** The line of a shell that starts drmas in it. */
  readonly command: string;
}

const MANIFESTS = ['package.json', 'package-lock.json'];

/**
 * Packs the project of a recipe.
 * @param source A recipe that ships, or the absolute path of a file
 * @param command What starts drmas on the nodes; by default npm installs what the lockfile says, or this version
 * @param peer An optional package that the nodes need beside it
 * @throws RunError where the lockfile does not have that one
 */
export async function projectPackage(source: string, command?: string, peer?: string): Promise<ProjectPackage> {
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
  const lock = [...files.keys()].find((path) => path.endsWith('package-lock.json'));
  if (command === undefined && lock !== undefined && peer !== undefined && !locks(files.get(lock), peer))
    throw new RunError(`the nodes install what ${lock} says, which lacks ${peer}: npm install ${peer} adds it`);
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

/** Gives the lockfile's folder the packages that it names, and starts the drmas among them. */
const installed = (folder: string) =>
  `node ${INSTALLER} ${shellWord(folder)} && ${shellWord(`./${folder}/node_modules/.bin/drmas`)}`;

/** The nearest folder with a lockfile, within three of the recipe's. */
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
