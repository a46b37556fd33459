import { createRequire } from 'node:module';
import { join } from 'node:path';
import { messageOf } from '../../../base/errors.js';
import { cacheDirectory, type Environment } from '../../../base/platform.js';
import type { Bfloat16Products } from '../bfloat16.js';
import { hostKernels } from '../host-kernels.js';
import { hostMemory } from '../host-memory.js';
import type { HostMemoryKinds } from '../kernel-arguments.js';
import type { KernelOperations, NativeOperations } from '../kernel-operations.js';
import type { HostKernels } from '../kernels.js';
import { type AddonKernels, addonKernels } from './addon-kernels.js';
import { addonPath, build, isBuilt, planBuild, shippedSources } from './build.js';
import { writableBuilds } from './build-cache.js';
import { findCompiler } from './compiler.js';
import { loadPrebuilt } from './prebuilt.js';

export interface NativeOptions {
  /** At least 1; the calling thread is one of them. */
  readonly threads: number;
  /** Instruction set to use; by default the best one that this processor has. */
  readonly isa?: 'avx512' | 'avx2' | 'portable' | undefined;
  /**
   * The instructions for products in bfloat16 (`HostKernels.bfloat16Products`); by default this processor's fastest.
   * 'amx-emulated' has the bits of 'amx' anywhere, slowly.
   */
  readonly bfloat16Products?: Bfloat16Products | undefined;
  /** Whose cores blocks of products are made for, which changes no bits; by default this processor's. */
  readonly cores?: 'amd' | 'any' | undefined;
  /** Called with a sentence for people before a step that takes a while. */
  readonly onProgress?: ((message: string) => void) | undefined;
  readonly environment?: Environment | undefined;
  /** The directory of kernels.cpp and addon.cpp; by default those that ship. */
  readonly sourceDirectory?: string | undefined;
  /** The directory of compiled addons; by default the one that ships. */
  readonly prebuilt?: string | undefined;
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

type LoadedAddon = { readonly kernels: NativeKernels } | { readonly reason: string };

/**
 * Loads the native kernels: the ones that ship compiled. If those do not load, it compiles them, unless the cache holds
 * them (half a minute or more). A missing compiler, directory or processor feature is a `reason`, not an error.
 */
export async function loadNativeKernels(options: NativeOptions): Promise<LoadedAddon> {
  const prebuilt = await prebuiltFor(options);
  if ('addon' in prebuilt) return kernelsOf(prebuilt.addon as Addon, options);
  if (process.platform === 'win32') return { reason: `on Windows they are not compiled, and ${prebuilt.reason}` };
  return loadCompiled(options);
}

/** The addon that ships, unless somebody names a compiler (`CXX`), or other sources, and so wants to compile. */
async function prebuiltFor({ environment = process.env, sourceDirectory, prebuilt }: NativeOptions) {
  if (sourceDirectory !== undefined) return { reason: 'other sources are wanted' };
  if (environment.CXX) return { reason: 'CXX names a compiler' };
  return loadPrebuilt(prebuilt);
}

function kernelsOf(addon: Addon, { threads, isa, bfloat16Products, cores }: NativeOptions): LoadedAddon {
  const native = addon.create(threads, isa, bfloat16Products, cores);
  return native
    ? { kernels: { ...native, ...addonKernels(native), ...hostKernels, ...hostMemory } }
    : {
        reason: `this processor cannot run ${[isa, bfloat16Products].filter((name) => name !== undefined).join(' with ')}`,
      };
}

async function loadCompiled(options: NativeOptions): Promise<LoadedAddon> {
  const { environment = process.env, onProgress } = options;
  const search = await findCompiler(environment);
  if ('reason' in search) return search;
  try {
    const plan = await planBuild(search.compiler, options.sourceDirectory ?? shippedSources());
    const builds = await writableBuilds(environment);
    const path = addonPath(builds, plan);
    let problem = '';
    for (let attempt = 0; attempt < 2; attempt++) {
      if (attempt > 0 || !(await isBuilt(builds, plan))) {
        onProgress?.('compiling the kernels (once; half a minute or more)');
        const complaint = await build(builds, plan, environment, attempt > 0);
        if (complaint !== undefined) return { reason: `${search.compiler.command.join(' ')} failed: ${complaint}` };
      }
      try {
        return kernelsOf(createRequire(import.meta.url)(path) as Addon, options);
      } catch (error) {
        problem = messageOf(error);
      }
    }
    return { reason: `${path} does not load: ${problem}` };
  } catch (error) {
    return { reason: messageOf(error) };
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
  /** The directory that builds are kept in. */
  readonly cache: string;
  /** Whether the cache holds the addon of these sources and this compiler. */
  readonly built: boolean;
}

export async function inspectNative(
  options: Pick<NativeOptions, 'environment' | 'sourceDirectory' | 'prebuilt'> = {},
): Promise<NativeInspection> {
  const { environment = process.env } = options;
  const cache = join(cacheDirectory(environment), 'native');
  const prebuilt = await prebuiltFor({ threads: 1, ...options });
  const search = await findCompiler(environment);
  if ('reason' in search) return { prebuilt, compiler: undefined, reason: search.reason, cache, built: false };
  const plan = await planBuild(search.compiler, options.sourceDirectory ?? shippedSources());
  const [version = ''] = search.compiler.version.split('\n');
  return {
    prebuilt,
    compiler: { command: search.compiler.command.join(' '), version },
    reason: undefined,
    cache,
    built: await isBuilt(cache, plan),
  };
}
