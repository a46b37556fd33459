/**
 * Builds the native addon with the plain C++ compiler and keeps it in the cache under the hash of all that went into
 * it. kernels.cpp is compiled once per instruction set (the addon picks one when it runs), addon.cpp once.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeStale } from '../../platform/stale.js';
import type { Environment } from './build-cache.js';
import { type Compiler, run } from './compiler.js';

// A CommonJS package without types.
const require = createRequire(import.meta.url);

interface Unit {
  readonly source: string;
  readonly object: string;
  readonly flags: readonly string[];
}

/** Everything that decides what the compiler is going to make. */
export interface BuildPlan {
  readonly compiler: Compiler;
  readonly sourceDirectory: string;
  readonly units: readonly Unit[];
  readonly link: readonly string[];
  /** The hash of sources, flags, the compiler's version, the platform and the Node-API version. */
  readonly hash: string;
}

const COMMON = ['-std=c++17', '-fPIC', '-fvisibility=hidden', '-ffp-contract=off', '-fno-math-errno', '-pthread'];

const ISA_FLAGS = {
  avx512: ['-mavx512f', '-mavx512vl', '-mavx512dq', '-mavx512bw', '-mavx2', '-mfma', '-mprefer-vector-width=512'],
  avx2: ['-mavx2', '-mfma'],
  portable: [],
};
export type Isa = keyof typeof ISA_FLAGS;

/** The flags that kernels.cpp is compiled with for an instruction set, without the level of optimisation. */
export const kernelFlags = (isa: Isa): string[] => [...COMMON, `-DDRMAS_ISA=${isa}`, ...ISA_FLAGS[isa]];

/** The sources that ship: `native/` beside the package.json of drmas, above this file in src as in dist. */
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
  const x64 = process.arch === 'x64';
  // Least first: of a template of the standard library that several units have, the linker keeps the first, and that
  // must run on every processor.
  const sets: Isa[] = x64 ? ['portable', 'avx2', 'avx512'] : ['portable'];
  const headers = require('node-api-headers') as { readonly include_dir: string };
  const units: Unit[] = sets.map((isa) => ({
    source: 'kernels.cpp',
    object: `${isa}.o`,
    flags: ['-O3', ...kernelFlags(isa)],
  }));
  const dispatch = x64 ? ['-DDRMAS_HAVE_AVX512', '-DDRMAS_HAVE_AVX2'] : [];
  units.push({
    source: 'addon.cpp',
    object: 'addon.o',
    flags: ['-O2', ...COMMON, ...dispatch, `-I${headers.include_dir}`],
  });
  const mac = process.platform === 'darwin';
  const link = mac ? ['-dynamiclib', '-undefined', 'dynamic_lookup'] : ['-shared', '-pthread'];

  const hash = createHash('sha256');
  const { napi = '' } = process.versions;
  const flags = units.map((unit) => unit.flags.filter((flag) => !flag.startsWith('-I')));
  hash.update(JSON.stringify([compiler, flags, link, process.platform, process.arch, napi]));
  for (const file of (await readdir(sourceDirectory, { recursive: true })).sort()) {
    if (!/\.(cpp|h)$/.test(file)) continue;
    hash.update(JSON.stringify([file, await readFile(join(sourceDirectory, file), 'utf8')]));
  }
  return { compiler, sourceDirectory, units, link, hash: hash.digest('hex').slice(0, 24) };
}

/** The beginning of the names of builds under way. */
const STAGING = '.build-';
const ADDON = 'drmas.node';
const CHECKSUM = 'drmas.node.sha256';

export const addonPath = (builds: string, plan: BuildPlan): string => join(builds, plan.hash, ADDON);

/**
 * Whether the addon lies in the cache as it was built. A library cut short (a full disk) could crash the process that
 * loads it, so its checksum is looked at first.
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

const checksum = (content: Uint8Array) => createHash('sha256').update(content).digest('hex');

/**
 * Compiles and links in a directory of its own, then renames that into place, so that whoever builds at the same time
 * sees all of it or nothing. An intact addon that somebody else put there meanwhile stays, unless `replace`. Returns
 * the compiler's complaint, or undefined when the addon is in place.
 */
export async function build(
  builds: string,
  plan: BuildPlan,
  environment: Environment,
  replace: boolean,
): Promise<string | undefined> {
  await removeStale(builds, STAGING);
  const staging = join(builds, `${STAGING}${randomBytes(8).toString('hex')}`);
  await mkdir(staging, { recursive: true });
  try {
    const { compiler, sourceDirectory, units, link } = plan;
    const compiled = await Promise.all(
      units.map(({ source, object, flags }) =>
        run(
          compiler.command,
          [...flags, '-c', join(sourceDirectory, source), '-o', join(staging, object)],
          environment,
        ),
      ),
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

/** A directory cannot be renamed over one with content: an intact one stays, a damaged one goes. */
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
