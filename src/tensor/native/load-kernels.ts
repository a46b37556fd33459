import { createRequire } from 'node:module';
import { join } from 'node:path';
import { messageOf } from '../../core/errors.js';
import { hostMemory } from '../host-memory.js';
import type { HostKernels } from '../kernels.js';
import type { NarrowProducts } from '../narrow-kernels.js';
import { type AddonKernels, structuredKernels } from './addon-kernels.js';
import { addonPath, build, isBuilt, planBuild, shippedSources } from './build.js';
import { cacheDirectory, type Environment, writableBuilds } from './build-cache.js';
import { findCompiler } from './compiler.js';
import { loadPrebuilt } from './prebuilt.js';

export interface NativeOptions {
  /** At least 1; the calling thread is one of them. */
  readonly threads: number;
  /** Instruction set to use; by default the best one that this processor has. */
  readonly isa?: 'avx512' | 'avx2' | 'portable' | undefined;
  /**
   * What multiplies operands in bfloat16 (`HostKernels.narrowProducts`); by default the fastest of this processor.
   * 'amx-emulated' has the bits of 'amx' anywhere, slowly.
   */
  readonly narrow?: NarrowProducts | undefined;
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

/** The kernels with what benchmarks hold them against. */
export interface NativeKernels extends HostKernels {
  /**
   * Multiply-adds on registers alone, in `tasks` tasks on all threads: returns the floating-point operations done,
   * which over the time taken are what the processor can do at most.
   */
  fmaPeak(tasks: number): number;
}

interface Addon {
  /** Undefined when this processor cannot run the wanted set. */
  create(
    ...options: [threads: number, isa?: string, narrow?: string, cores?: string]
  ): (AddonKernels & Pick<NativeKernels, 'fmaPeak'>) | undefined;
}

type Loaded = { readonly kernels: NativeKernels } | { readonly reason: string };

/**
 * Loads the native kernels: those that ship compiled, or, where they do not load, ones that are built first when the
 * cache does not hold them (some seconds of compiling). Never throws for want of a compiler, a writable directory or a
 * matching processor: that is a `reason`.
 */
export async function loadNativeKernels(options: NativeOptions): Promise<Loaded> {
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

function kernelsOf(addon: Addon, { threads, isa, narrow, cores }: NativeOptions): Loaded {
  const native = addon.create(threads, isa, narrow, cores);
  return native
    ? { kernels: { ...native, ...structuredKernels(native), ...hostMemory } }
    : { reason: `this processor cannot run ${[isa, narrow].filter((name) => name !== undefined).join(' with ')}` };
}

async function loadCompiled(options: NativeOptions): Promise<Loaded> {
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
