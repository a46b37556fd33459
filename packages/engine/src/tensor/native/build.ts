/**
 * Builds addons with the plain C++ compiler and keeps them in the cache, in a directory named by the hash of all that
 * went into them. Each set of kernels (`KernelSet`) is one addon; object files are kept too, so that an interrupted
 * build continues and sets share their common parts.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pLimit from 'p-limit';
import type { Environment } from '../../platform.js';
import { nodeFiles, removeStale } from '../../platform.js';
import { aloneIn } from './build-lock.js';
import { type CompileProgress, compileProgress } from './build-progress.js';
import { type Compiler, type RunResult, run } from './compiler.js';
import { type Abilities, type KernelSet, setName } from './kernel-set.js';
import { type Unit, unitsFor, unitsOf } from './units.js';

/** Everything that decides the compiler's output. */
export interface BuildPlan {
  readonly compiler: Compiler;
  readonly sourceDirectory: string;
  readonly link: readonly string[];
  /** The directory in the cache: the hash of sources, flags, the compiler's version and the platform. */
  readonly directory: string;
}

export interface BuildOptions {
  readonly environment: Environment;
  /** Receives a line at the start, and then every few seconds. */
  readonly onProgress?: ((message: string) => void) | undefined;
  /** Processor time that each file may take. */
  readonly processorSeconds?: number | undefined;
}

/** Why there is no addon, and whether a compiler used up its time. */
export interface BuildFailure {
  readonly problem: string;
  readonly limited: boolean;
}

/** The C++ sources in the package: `native/` beside package.json, found from src as well as from dist. */
export function shippedSources(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!(existsSync(join(directory, 'package.json')) && existsSync(join(directory, 'native')))) {
    const parent = dirname(directory);
    if (parent === directory) throw new Error('the package has no directory native/');
    directory = parent;
  }
  return join(directory, 'native');
}

/** @param builds The directory of all builds */
export async function planBuild(builds: string, compiler: Compiler, sourceDirectory: string): Promise<BuildPlan> {
  const mac = process.platform === 'darwin';
  const link = mac ? ['-dynamiclib', '-undefined', 'dynamic_lookup'] : ['-shared', '-pthread'];

  const hash = createHash('sha256');
  const units = unitsFor(process.arch);
  const flags = units.map(({ flags: all, newer }) => [all.filter((flag) => !flag.startsWith('-I')), newer]);
  hash.update(JSON.stringify([compiler, flags, link, process.platform, process.arch]));
  hash.update(await sourceHash(sourceDirectory));
  return { compiler, sourceDirectory, link, directory: join(builds, hash.digest('hex').slice(0, 24)) };
}

export async function sourceHash(sourceDirectory: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of (await readdir(sourceDirectory, { recursive: true })).sort()) {
    if (!/\.(cpp|h)$/.test(file)) continue;
    hash.update(JSON.stringify([file.replaceAll('\\', '/'), await readFile(join(sourceDirectory, file), 'utf8')]));
  }
  return hash.digest('hex');
}

const addonName = (set: KernelSet) => `${setName(set)}.node`;
export const addonPath = ({ directory }: BuildPlan, set: KernelSet): string => join(directory, addonName(set));

/** Whether the cache has the addon of a set, undamaged. */
export const isBuilt = (plan: BuildPlan, set: KernelSet): Promise<boolean> => isIntact(addonPath(plan, set));

const PROCESSOR = 'processor';
const checksumPath = (path: string) => `${path}.sha256`;
export const checksum = (content: Uint8Array) => createHash('sha256').update(content).digest('hex');

/**
 * Whether a file has the content that was written. A truncated library (from a full disk) could crash the process that
 * loads it, so its checksum is compared first.
 */
export async function isIntact(path: string): Promise<boolean> {
  try {
    const [content, expected] = await Promise.all([readFile(path), readFile(checksumPath(path), 'utf8')]);
    return checksum(content) === expected;
  } catch {
    return false;
  }
}

/** This processor's abilities, if the program that prints them is in the cache. */
export async function knownAbilities(plan: BuildPlan, environment: Environment): Promise<Abilities | undefined> {
  const program = join(plan.directory, PROCESSOR);
  if (!(await isIntact(program))) return undefined;
  const { stdout, problem } = await run([program], [], environment);
  return problem === undefined ? (JSON.parse(stdout) as Abilities) : undefined;
}

/** This processor's abilities. A program of one file is compiled if necessary. */
export async function abilitiesHere(plan: BuildPlan, options: BuildOptions): Promise<Abilities | BuildFailure> {
  const known = await knownAbilities(plan, options.environment);
  if (known !== undefined) return known;
  return inStaging(plan, async (staging) => {
    const build = new Build(plan, staging, options, { replace: true });
    const words = ['-O1', '-std=c++17', join(plan.sourceDirectory, 'processor.cpp')];
    const failure = await build.make(PROCESSOR, (out) => build.compiler([...words, '-o', out]));
    if (failure !== undefined) return failure;
    const { stdout, problem } = await run([join(plan.directory, PROCESSOR)], [], options.environment);
    return problem === undefined ? (JSON.parse(stdout) as Abilities) : { problem, limited: false };
  });
}

/** Two compilers at once: a machine that trains has two cores at least, and a user has other work on the others. */
const COMPILERS = 2;

/**
 * Compiles and links the addons of sets. If another process builds in this cache, this one waits and takes its results.
 * @param replace The addons and their parts are made again, because they do not load
 */
export function buildSets(
  plan: BuildPlan,
  sets: readonly KernelSet[],
  options: BuildOptions,
  replace: boolean,
): Promise<BuildFailure | undefined> {
  return aloneIn(plan.directory, options.onProgress, async () => {
    const different = [...new Map(sets.map((set) => [setName(set), set])).values()];
    const built = replace ? [] : await Promise.all(different.map((set) => isBuilt(plan, set)));
    const wanted = different.filter((_, index) => !built[index]);
    if (wanted.length === 0) return undefined;
    const units = new Map(wanted.flatMap((set) => unitsOf(set).map((unit) => [unit.object, unit])));
    const progress = compileProgress(wanted.map(setName).join(', '), units.size, options.onProgress);
    try {
      return await inStaging(plan, async (staging) => {
        const build = new Build(plan, staging, options, { replace, progress });
        const limit = pLimit(COMPILERS);
        const compiled = await Promise.all([...units.values()].map((unit) => limit(() => build.compile(unit))));
        const failed = compiled.find((failure) => failure !== undefined);
        if (failed !== undefined) return failed;
        const linked = wanted.map((set) => limit(() => build.link(unitsOf(set), addonName(set))));
        return (await Promise.all(linked)).find((failure) => failure !== undefined);
      });
    } finally {
      progress.end();
    }
  });
}

/** The beginning of the names of builds under way. */
const STAGING = '.build-';

async function inStaging<T>({ directory }: BuildPlan, work: (staging: string) => Promise<T>): Promise<T> {
  await removeStale(nodeFiles, directory, STAGING);
  const staging = join(directory, `${STAGING}${randomBytes(8).toString('hex')}`);
  await mkdir(staging, { recursive: true });
  try {
    return await work(staging);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** One build: files that appear in the plan's directory when they are complete. */
class Build {
  readonly #plan: BuildPlan;
  readonly #staging: string;
  readonly #options: BuildOptions;
  readonly #replace: boolean;
  readonly #progress: CompileProgress | undefined;
  #failed = false;

  constructor(
    plan: BuildPlan,
    staging: string,
    options: BuildOptions,
    { replace, progress }: { readonly replace: boolean; readonly progress?: CompileProgress },
  ) {
    this.#plan = plan;
    this.#staging = staging;
    this.#options = options;
    this.#replace = replace;
    this.#progress = progress;
  }

  compiler(words: readonly string[]): Promise<RunResult> {
    const { environment, processorSeconds } = this.#options;
    return run(this.#plan.compiler.command, words, environment, processorSeconds);
  }

  /** Makes a file in the staging directory and moves it into place, unless an intact one is there. */
  async make(name: string, write: (out: string) => Promise<RunResult>): Promise<BuildFailure | undefined> {
    const place = join(this.#plan.directory, name);
    if (!this.#replace && (await isIntact(place))) return undefined;
    const out = join(this.#staging, name);
    const { problem, limited } = await write(out);
    if (problem !== undefined) return { problem, limited };
    await writeFile(checksumPath(out), checksum(await readFile(out)));
    for (const path of [out, checksumPath(out)])
      await rename(path, join(this.#plan.directory, path.slice(this.#staging.length + 1)));
    return undefined;
  }

  /** Compiles a unit, unless another one has failed. */
  async compile({ source, object, flags, newer }: Unit): Promise<BuildFailure | undefined> {
    if (this.#failed) return undefined;
    const path = join(this.#plan.sourceDirectory, source);
    const failure = await this.make(object, async (out) => {
      const words = ['-c', path, '-o', out];
      if (newer === undefined) return this.compiler([...flags, ...words]);
      const whole = await this.compiler([...flags, ...newer, ...words]);
      return whole.problem === undefined || whole.limited ? whole : this.compiler([...flags, ...words]);
    });
    if (failure === undefined) this.#progress?.done();
    else this.#failed = true;
    return failure;
  }

  link(units: readonly Unit[], name: string): Promise<BuildFailure | undefined> {
    const objects = units.map(({ object }) => join(this.#plan.directory, object));
    return this.make(name, (out) => this.compiler([...this.#plan.link, ...objects, '-o', out]));
  }
}
