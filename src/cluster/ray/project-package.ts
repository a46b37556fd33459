/** The files of a project that a job needs: the recipe's file, its local imports, and the lockfile of the packages. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';
import { RunError } from '../../base/errors.js';
import { shellWord } from '../../base/host.js';
import { packageVersion } from '../../base/platform.js';
import { localFiles } from '../../method/recipe-files.js';
import { INSTALLER, installerSource } from './node-packages.js';
import { zipArchive } from './zip-archive.js';

export interface ProjectPackage {
  /** The package's name in Ray, which follows from its content. */
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The recipe in the package: a path, or the name of a recipe that ships. */
  readonly recipe: string;
  /** The shell command that starts drmas in it. */
  readonly command: string;
}

const MANIFESTS = ['package.json', 'package-lock.json'];

/**
 * Packs the project of a recipe.
 * @param source A recipe that ships, or the absolute path of a file
 * @param command The command that starts drmas on the nodes; by default npm installs the lockfile's packages, or this
 * version
 * @param peer An optional package that the nodes need too
 * @throws RunError if the lockfile does not have the optional package
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
