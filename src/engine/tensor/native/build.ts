/**
 * Builds the native addon with the plain C++ compiler and keeps it in the cache under the hash of all that went into
 * it. kernels.cpp is compiled once per instruction set (the addon picks one when it runs), addon.cpp once.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Environment } from '../../../base/platform.js';
import { nodeFiles, removeStale } from '../../../base/platform.js';
import { type Compiler, run } from './compiler.js';
import { type Unit, unitsFor } from './units.js';

/** Everything that decides the compiler's output. */
export interface BuildPlan {
  readonly compiler: Compiler;
  readonly sourceDirectory: string;
  readonly units: readonly Unit[];
  readonly link: readonly string[];
  /** The hash of sources, flags, the compiler's version and the platform. Any Node loads an addon of Node-API. */
  readonly hash: string;
}

/** The C++ sources in the package: `native/` beside the package.json of drmas, found from src as well as from dist. */
export function shippedSources(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!(existsSync(join(directory, 'package.json')) && existsSync(join(directory, 'native')))) {
    const parent = dirname(directory);
    if (parent === directory) throw new Error('the package has no directory native/');
    directory = parent;
  }
  return join(directory, 'native');
}

export async function planBuild(compiler: Compiler, sourceDirectory: string): Promise<BuildPlan> {
  const units = unitsFor(process.arch);
  const mac = process.platform === 'darwin';
  const link = mac ? ['-dynamiclib', '-undefined', 'dynamic_lookup'] : ['-shared', '-pthread'];

  const hash = createHash('sha256');
  const flags = units.map(({ flags: all, newer }) => [all.filter((flag) => !flag.startsWith('-I')), newer]);
  hash.update(JSON.stringify([compiler, flags, link, process.platform, process.arch]));
  hash.update(await sourceHash(sourceDirectory));
  return { compiler, sourceDirectory, units, link, hash: hash.digest('hex').slice(0, 24) };
}

/** The hash of all sources of the addon. */
export async function sourceHash(sourceDirectory: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of (await readdir(sourceDirectory, { recursive: true })).sort()) {
    if (!/\.(cpp|h)$/.test(file)) continue;
    hash.update(JSON.stringify([file.replaceAll('\\', '/'), await readFile(join(sourceDirectory, file), 'utf8')]));
  }
  return hash.digest('hex');
}

/** The beginning of the names of builds under way. */
const STAGING = '.build-';
const ADDON = 'drmas.node';
const CHECKSUM = 'drmas.node.sha256';

export const addonPath = (builds: string, plan: BuildPlan): string => join(builds, plan.hash, ADDON);

/**
 * Whether the cache has the addon undamaged. A truncated library (from a full disk) could crash the process that loads
 * it, so its checksum is compared first.
 */
export async function isBuilt(builds: string, plan: BuildPlan): Promise<boolean> {
  return isIntact(join(builds, plan.hash));
}

async function isIntact(directory: string): Promise<boolean> {
  try {
    const [addon, expected] = await Promise.all([
      readFile(join(directory, ADDON)),
      readFile(join(directory, CHECKSUM), 'utf8'),
    ]);
    return checksum(addon) === expected;
  } catch {
    return false;
  }
}

export const checksum = (content: Uint8Array) => createHash('sha256').update(content).digest('hex');

/**
 * Compiles and links in a separate directory, then renames it into place, so that a second building process sees a
 * complete addon or none. If another process has put an intact addon there in the meantime, that one is kept, unless
 * `replace` is true. Returns the compiler's error, or undefined if the addon is in place.
 */
export async function build(
  builds: string,
  plan: BuildPlan,
  environment: Environment,
  replace: boolean,
): Promise<string | undefined> {
  await removeStale(nodeFiles, builds, STAGING);
  const staging = join(builds, `${STAGING}${randomBytes(8).toString('hex')}`);
  await mkdir(staging, { recursive: true });
  try {
    const { compiler, sourceDirectory, units, link } = plan;
    const compiled = await Promise.all(
      units.map(async ({ source, object, flags, newer }) => {
        const words = ['-c', join(sourceDirectory, source), '-o', join(staging, object)];
        const compile = (all: readonly string[]) => run(compiler.command, [...all, ...words], environment);
        if (newer === undefined) return compile(flags);
        const whole = await compile([...flags, ...newer]);
        return whole.problem === undefined ? whole : compile(flags);
      }),
    );
    const failed = compiled.find(({ problem }) => problem !== undefined);
    if (failed !== undefined) return failed.problem;
    const objects = units.map(({ object }) => join(staging, object));
    const linked = await run(compiler.command, [...link, ...objects, '-o', join(staging, ADDON)], environment);
    if (linked.problem !== undefined) return linked.problem;
    await writeFile(join(staging, CHECKSUM), checksum(await readFile(join(staging, ADDON))));
    await Promise.all(objects.map((object) => rm(object)));
    const place = join(builds, plan.hash);
    if (replace) await discard(place, staging);
    await moveIntoPlace(staging, place);
    return undefined;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** A directory cannot be renamed over a full one. So an intact directory is kept, and a damaged one is removed. */
async function moveIntoPlace(staging: string, place: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rename(staging, place);
    } catch (error) {
      if (await isIntact(place)) return;
      if (attempt === 3) throw error;
      await discard(place, staging);
    }
  }
}

/** Renames a damaged build before it is deleted, so that no process sees half of it. */
async function discard(place: string, staging: string): Promise<void> {
  const aside = `${staging}-damaged`;
  if (existsSync(place)) await rename(place, aside).catch(ignoreMissing);
  await rm(aside, { recursive: true, force: true });
}

/** Ignores that a directory is gone: another process was faster. */
function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
