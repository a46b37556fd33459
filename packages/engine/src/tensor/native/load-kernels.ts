import { createRequire } from 'node:module';
import { join } from 'node:path';
import { messageOf } from '../../errors.js';
import { cacheDirectory, codeOf, type Environment } from '../../platform.js';
import { hostKernels, hostMemory } from '../host-kernels.js';
import type { HostMemoryKinds } from '../kernel-arguments.js';
import type { KernelOperations, NativeOperations } from '../kernel-operations.js';
import type { HostKernels } from '../kernels.js';
import { type AddonKernels, addonKernels } from './addon-kernels.js';
import {
  abilitiesHere,
  addonPath,
  type BuildFailure,
  buildSets,
  isBuilt,
  isIntact,
  knownAbilities,
  planBuild,
  shippedSources,
} from './build.js';
import { writableBuilds } from './build-cache.js';
import { findCompiler } from './compiler.js';
import { cannotRun, chooseSet, type KernelSet, type SetRequest } from './kernel-set.js';
import { loadPrebuilt } from './prebuilt.js';

export interface NativeOptions extends SetRequest {
  /** At least 1; the calling thread is one of them. */
  readonly threads: number;
  /** Whose cores blocks of products are made for, which changes no bits; by default this processor's. */
  readonly cores?: 'amd' | 'older-amd' | 'any' | undefined;
  /** Called with a sentence for people before a step that takes a while, and every few seconds while it lasts. */
  readonly onProgress?: ((message: string) => void) | undefined;
  readonly environment?: Environment | undefined;
  /** The directory of the C++ sources; by default those that ship. */
  readonly sourceDirectory?: string | undefined;
  /** Processor time that the compiler may use for each file; by default 600. */
  readonly processorSeconds?: number | undefined;
  /** The directory of compiled addons; by default the one that ships. */
  readonly prebuilt?: string | undefined;
  /** The addon that this process loaded for the same request before, which is loaded again without a look around. */
  readonly loaded?: string | undefined;
}

/** The kernels, and the measurement of the processor that benchmarks compare them with. */
export interface NativeKernels extends HostKernels, NativeOperations {}

type Properties = Omit<HostKernels, keyof KernelOperations<HostMemoryKinds> | keyof typeof hostMemory>;

interface Addon {
  /** Undefined if this processor cannot run the wanted set. */
  create(
    ...options: [threads: number, isa?: string, bfloat16Products?: string, cores?: string]
  ): (AddonKernels & Properties) | undefined;
}

/**
 * Why there are no native kernels. `no-compiler`: nothing can compile them. `compiler-failed`: a compiler is there, and
 * failed. `out-of-time`: it used up its processor time; finished parts are in the cache. `other`: anything else.
 */
export type NoKernelsCause = 'no-compiler' | 'compiler-failed' | 'out-of-time' | 'other';

export interface NoKernels {
  readonly reason: string;
  readonly cause: NoKernelsCause;
}

/** The kernels, and the path of their addon if it was compiled here. */
type LoadedAddon = { readonly kernels: NativeKernels; readonly addon?: string } | NoKernels;

const none = (cause: NoKernelsCause, reason: string): NoKernels => ({ reason, cause });

/**
 * Loads the native kernels: the ones that ship compiled. If those do not load, it compiles the set that the request
 * needs on this processor, unless the cache holds it (about 20 s of processor time). A missing compiler, directory or
 * processor feature is a `reason`, not an error. So are options of Node that forbid addons.
 */
export async function loadNativeKernels(options: NativeOptions): Promise<LoadedAddon> {
  const { loaded } = options;
  const disabled = addonsDisabled();
  if (disabled !== undefined) return none('other', disabled);
  if (loaded !== undefined && (await isIntact(loaded))) return loadAddon(loaded, options);
  const prebuilt = await prebuiltFor(options);
  if ('addon' in prebuilt) return kernelsOf(prebuilt.addon as Addon, options);
  if (process.platform === 'win32') return none('other', `on Windows they are not compiled, and ${prebuilt.reason}`);
  return loadCompiled(options);
}

/** Why Node loads no addon in this process, if its options say so. One that was compiled here would not load either. */
function addonsDisabled(): string | undefined {
  try {
    process.dlopen({ exports: {} }, join(shippedSources(), 'absent.node'));
  } catch (error) {
    if (codeOf(error) === 'ERR_DLOPEN_DISABLED')
      return 'Node loads no addons with --no-addons, and with --permission only if --allow-addons is there too';
  }
  return undefined;
}

/** The addon that ships, unless somebody names a compiler (`CXX`), or other sources, and so wants to compile. */
async function prebuiltFor({ environment = process.env, sourceDirectory, prebuilt }: NativeOptions) {
  if (sourceDirectory !== undefined) return { reason: 'other sources are wanted' };
  if (environment.CXX) return { reason: 'CXX names a compiler' };
  return loadPrebuilt(prebuilt);
}

function kernelsOf(addon: Addon, { threads, cores, ...request }: NativeOptions): LoadedAddon {
  const native = addon.create(threads, request.isa, request.bfloat16Products, cores);
  return native
    ? { kernels: { ...native, ...addonKernels(native), ...hostKernels, ...hostMemory } }
    : none('other', cannotRun(request));
}

/** @throws if the file does not load */
function loadAddon(path: string, options: NativeOptions): LoadedAddon {
  return { ...kernelsOf(createRequire(import.meta.url)(path) as Addon, options), addon: path };
}

interface CompiledSet {
  readonly path: string;
  readonly again: () => Promise<NoKernels | undefined>;
}

/**
 * Compiles the sets that requests need on this processor, unless the cache holds them. It does not load them.
 * @throws if the cache cannot be written to
 */
export async function compileSets(
  requests: readonly SetRequest[],
  options: Omit<NativeOptions, 'threads' | keyof SetRequest>,
): Promise<(CompiledSet | NoKernels)[]> {
  const { environment = process.env, onProgress, processorSeconds, sourceDirectory = shippedSources() } = options;
  const all = (reason: NoKernels) => requests.map(() => reason);
  const search = await findCompiler(environment);
  if ('reason' in search) return all(none('no-compiler', search.reason));
  const { compiler } = search;
  const failure = ({ problem, limited }: BuildFailure) =>
    none(limited ? 'out-of-time' : 'compiler-failed', `${compiler.command.join(' ')} failed: ${problem}`);
  const plan = await planBuild(await writableBuilds(environment), compiler, sourceDirectory);
  const building = { environment, onProgress, processorSeconds };
  const abilities = await abilitiesHere(plan, building);
  if ('problem' in abilities) return all(failure(abilities));
  const choices = requests.map((request) => chooseSet(abilities, request));
  const build = async (sets: readonly KernelSet[], replace: boolean) => {
    const failed = await buildSets(plan, sets, building, replace);
    return failed && failure(failed);
  };
  const sets = choices.flatMap((choice) => ('set' in choice ? choice.set : []));
  const built = await Promise.all(sets.map((set) => isBuilt(plan, set)));
  const failed = built.every((is) => is) ? undefined : await build(sets, false);
  return choices.map((choice) => {
    if ('reason' in choice) return none('other', choice.reason);
    const { set } = choice;
    return failed ?? { path: addonPath(plan, set), again: () => build([set], true) };
  });
}

async function loadCompiled(options: NativeOptions): Promise<LoadedAddon> {
  try {
    const [compiled = none('other', 'no set is requested')] = await compileSets([options], options);
    if ('reason' in compiled) return compiled;
    const { path, again } = compiled;
    try {
      return loadAddon(path, options);
    } catch {
      const failed = await again();
      if (failed !== undefined) return failed;
    }
    try {
      return loadAddon(path, options);
    } catch (error) {
      return none('compiler-failed', `${path} does not load: ${messageOf(error)}`);
    }
  } catch (error) {
    return none('other', messageOf(error));
  }
}

/** The state of the native kernels on this machine, for `drmas doctor`. */
export interface NativeInspection {
  /** The name of the addon that ships and loads here, or why none does. */
  readonly prebuilt: { readonly name: string } | { readonly reason: string };
  /** Command and first line of its version; undefined when no compiler runs. */
  readonly compiler: { readonly command: string; readonly version: string } | undefined;
  /** Why there is no compiler. */
  readonly reason: string | undefined;
  readonly cache: string;
  /** Whether the cache holds the addon of these sources and this compiler for the requested set. */
  readonly built: boolean;
}

export async function inspectNative(
  options: Pick<NativeOptions, 'environment' | 'sourceDirectory' | 'prebuilt' | keyof SetRequest> = {},
): Promise<NativeInspection> {
  const { environment = process.env } = options;
  const cache = join(cacheDirectory(environment), 'native');
  const prebuilt = await prebuiltFor({ threads: 1, ...options });
  const search = await findCompiler(environment);
  if ('reason' in search) return { prebuilt, compiler: undefined, reason: search.reason, cache, built: false };
  const plan = await planBuild(cache, search.compiler, options.sourceDirectory ?? shippedSources());
  const abilities = await knownAbilities(plan, environment);
  const choice = abilities && chooseSet(abilities, options);
  const [version = ''] = search.compiler.version.split('\n');
  return {
    prebuilt,
    compiler: { command: search.compiler.command.join(' '), version },
    reason: undefined,
    cache,
    built: choice !== undefined && 'set' in choice && (await isBuilt(plan, choice.set)),
  };
}
