import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Device } from '../contract/architecture.js';
import { ArgumentError, DeviceError, messageOf } from '../errors.js';
import { devicePackage } from './device-package.js';
import { engineDevice, ON_A_GPU } from './engine-device.js';
import type { HostKernels, Kernels } from './kernels.js';
import { shippedSources } from './native/build.js';
import { loadNativeKernels, type NativeOptions, type NoKernels } from './native/load-kernels.js';
import { createReferenceKernels } from './reference/reference.js';
import { startNodeThread } from './wasm/node-threads.js';
import { createWasmKernels } from './wasm/wasm.js';

/** The kinds of kernels, the fastest first. */
const KERNELS = ['native', 'wasm', 'reference'] as const;
type KernelsName = (typeof KERNELS)[number];

/**
 * `DRMAS_KERNELS` for the native kernels whose bits are the same on every processor with AVX2 and on every ARM one:
 * AVX-512 sums in another order.
 */
const SAME_EVERYWHERE = 'native-avx2';

export interface SelectOptions extends NativeOptions {
  /**
   * The fastest kernels to try; by default native. `DRMAS_KERNELS` in the environment overrides this, and excludes
   * slower ones and, as `native-avx2`, other instruction sets too.
   */
  readonly prefer?: KernelsName | undefined;
}

export interface Selection {
  readonly kernels: HostKernels;
  /** One line for the user if faster kernels could not be loaded. */
  readonly notice?: string;
  /** The file of native kernels that were compiled here, which another engine can load as `NativeOptions.loaded`. */
  readonly addon?: string | undefined;
}

/**
 * The fastest kernels that this machine can load: native kernels, which a C++ compiler builds on first use; else
 * WebAssembly, which is in the package; else plain TypeScript.
 * @throws ArgumentError when `DRMAS_KERNELS` is none of native, native-avx2, wasm, reference and webgpu, or asks for
 *   kernels that cannot be loaded.
 */
export async function selectKernels(given: SelectOptions): Promise<Selection> {
  const { environment = process.env, prefer = 'native' } = given;
  const named = environment.DRMAS_KERNELS || undefined;
  const forced = named === ON_A_GPU ? undefined : named;
  const options = forced === SAME_EVERYWHERE ? { ...given, isa: isaOfEverywhere() } : given;
  const wanted = forced === SAME_EVERYWHERE ? 'native' : (forced ?? prefer);
  const first = KERNELS.find((name) => name === wanted);
  if (first === undefined)
    throw new ArgumentError(
      `DRMAS_KERNELS is ${forced}, expected native, ${SAME_EVERYWHERE}, wasm, reference or ${ON_A_GPU}`,
    );

  const reasons: string[] = [];
  let advice = ADVICE.other;
  for (const name of KERNELS.slice(KERNELS.indexOf(first))) {
    const loaded = await load[name](options);
    if ('kernels' in loaded) {
      const { kernels, addon } = loaded;
      return reasons.length === 0 ? { kernels, addon } : { kernels, notice: slowNotice(reasons, kernels, advice) };
    }
    if (forced !== undefined) throw new ArgumentError(`DRMAS_KERNELS is ${forced}, but ${loaded.reason}`);
    if (loaded.cause !== undefined) advice = ADVICE[loaded.cause];
    reasons.push(`No ${NAMES[name]} kernels: ${loaded.reason.replaceAll(/\s*\n\s*/g, ' | ')}.`);
  }
  throw new Error('the reference kernels can always be had');
}

/**
 * The kernels of an engine: a GPU's if `device` or `DRMAS_KERNELS=webgpu` asks for them, else `selectKernels`.
 * @throws ArgumentError as `engineDevice` and `selectKernels` do; DeviceError when there is no
 *   GPU, or it computes wrong
 */
export async function selectEngineKernels(
  options: SelectOptions & { readonly device?: Device | undefined },
): Promise<Omit<Selection, 'kernels'> & { readonly kernels: Kernels }> {
  const { environment = process.env, device } = options;
  if (engineDevice(device, environment) === 'cpu') return selectKernels(options);
  try {
    const { openDeviceKernels } = await devicePackage();
    return { kernels: await openDeviceKernels() };
  } catch (error) {
    if (!(error instanceof DeviceError)) throw error;
    throw new DeviceError(error.reason, `no GPU to compute on: ${error.message}`);
  }
}

/** ARM has one set, which `npm run verify -- arm` holds to AVX2's bits. */
const isaOfEverywhere = (): NativeOptions['isa'] => (process.arch === 'x64' ? 'avx2' : 'portable');

type Loaded =
  | { readonly kernels: HostKernels; readonly addon?: string }
  | (Pick<NoKernels, 'reason'> & Partial<NoKernels>);

const load: Record<KernelsName, (options: NativeOptions) => Promise<Loaded>> = {
  native: loadNativeKernels,
  wasm: loadWasmKernels,
  reference: async () => ({ kernels: createReferenceKernels() }),
};

async function loadWasmKernels({ threads }: NativeOptions): Promise<Loaded> {
  try {
    const bytes = await readFile(join(shippedSources(), 'drmas.wasm'));
    return { kernels: createWasmKernels(bytes, { threads, start: startNodeThread }) };
  } catch (error) {
    return { reason: messageOf(error) };
  }
}

const NAMES: Record<KernelsName, string> = { native: 'native', wasm: 'WebAssembly', reference: 'TypeScript' };

/** Measured at the sizes of the shipped recipes (docs/decisions/010-the-c-kernels-as-webassembly-committed.md). */
const SLOWER: Record<KernelsName, (threads: number) => string> = {
  native: () => '',
  wasm: (threads) => `about 3 times slower on each core (threads: ${threads})`,
  reference: () => 'about 30 times slower on each core, and on one core only',
};

/** The remedy for each reason why there are no native kernels. */
const ADVICE: Readonly<Record<NoKernels['cause'], string>> = {
  'no-compiler':
    'For the fast ones take a package with compiled kernels (`drmas doctor` says why there are none here) or install a ' +
    'C++ compiler (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; macOS: xcode-select --install).',
  'compiler-failed':
    'The next start tries again. If the compiler is too old or broken, name another one: CXX=clang++. ' +
    '`drmas doctor` shows what was tried.',
  'out-of-time':
    'The compiler is there, but it used up its processor time. The files that it finished are kept, and the next start ' +
    'continues with the rest; `DRMAS_KERNELS=wasm` keeps these kernels without another try.',
  other: '`drmas doctor` shows what was tried.',
};

const slowNotice = (reasons: readonly string[], { name, threads }: HostKernels, advice: string) =>
  `${reasons.join(' ')} Using the ${NAMES[name]} ones, ${SLOWER[name](threads)}. Kernels round differently, so a run ` +
  `resumes on the kernels of its start. ${advice}`;
