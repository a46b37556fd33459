import { ArgumentError } from '../core/errors.js';
import type { Kernels } from './kernels.js';
import { loadNativeKernels, type NativeOptions } from './native/load.js';
import { createReferenceKernels } from './reference/reference.js';

export interface SelectOptions extends NativeOptions {
  /** Default: native where it can be had. `DRMAS_KERNELS` in the environment wins. */
  readonly prefer?: 'native' | 'reference' | undefined;
}

export interface Selection {
  readonly kernels: Kernels;
  /** One line for people when they get less than they could have. */
  readonly notice?: string;
}

/**
 * The fastest kernels that can be had here.
 * @throws ArgumentError when `DRMAS_KERNELS` is neither native nor reference, or asks for native ones that cannot be had.
 */
export async function selectKernels(options: SelectOptions): Promise<Selection> {
  const { environment = process.env, prefer = 'native' } = options;
  const forced = environment.DRMAS_KERNELS;
  if (forced !== undefined && forced !== '' && forced !== 'native' && forced !== 'reference') {
    throw new ArgumentError(`DRMAS_KERNELS is ${forced}, expected native or reference`);
  }
  if ((forced || prefer) === 'reference') return { kernels: createReferenceKernels() };
  const loaded = await loadNativeKernels(options);
  if ('kernels' in loaded) return loaded;
  if (forced === 'native') throw new ArgumentError(`DRMAS_KERNELS is native, but ${loaded.reason}`);
  return { kernels: createReferenceKernels(), notice: slowNotice(loaded.reason) };
}

/** Measured at the sizes of the shipped recipes; the TypeScript kernels also use one core only. */
const SLOWER = 'about 30 times slower on each core, and on one core only';

const slowNotice = (reason: string) =>
  `No native kernels: ${reason.replaceAll(/\s*\n\s*/g, ' | ')}. Using the TypeScript ones, ${SLOWER}. For the fast ones ` +
  'install a C++ compiler (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; macOS: xcode-select --install).';
