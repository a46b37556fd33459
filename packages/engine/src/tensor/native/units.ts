/** The parts that the addon is compiled from, and their flags. */
import { createRequire } from 'node:module';
import type { Bfloat16Products } from '../bfloat16.js';
import type { Isa, KernelSet } from './kernel-set.js';

export interface Unit {
  readonly source: string;
  readonly object: string;
  readonly flags: readonly string[];
  /** Flags that older compilers do not know. Without them the unit is smaller. */
  readonly newer?: readonly string[];
}

const COMMON = ['-std=c++17', '-fPIC', '-fvisibility=hidden', '-ffp-contract=off', '-fno-math-errno', '-pthread'];

const ISA_FLAGS: Readonly<Record<Isa, readonly string[]>> = {
  avx512: ['-mavx512f', '-mavx512vl', '-mavx512dq', '-mavx512bw', '-mavx2', '-mfma', '-mprefer-vector-width=512'],
  avx2: ['-mavx2', '-mfma'],
  portable: [],
};

/** The flags that an instruction set's kernels are compiled with, without the level of optimisation. */
export const kernelFlags = (isa: Isa): string[] => [...COMMON, `-DDRMAS_ISA=${isa}`, ...ISA_FLAGS[isa]];

/** The directory of Node's headers for addons, and of the lists of Node's exports. */
export function nodeHeaders() {
  const require = createRequire(import.meta.url);
  // A CommonJS package without types.
  const { include_dir: include, def_paths: definitions } = require('node-api-headers') as {
    readonly include_dir: string;
    readonly def_paths: { readonly node_api_def: string };
  };
  return { include, definitions: definitions.node_api_def };
}

/** The sources of an instruction set's kernels, the longest to compile first. */
export const KERNEL_SOURCES = ['blocks.cpp', 'kernels.cpp', 'products.cpp'] as const;

const kernelUnits = (isa: Isa): Unit[] =>
  KERNEL_SOURCES.map((source) => ({
    source,
    object: source === 'kernels.cpp' ? `${isa}.o` : `${isa}-${source.replace('.cpp', '.o')}`,
    // Written out in vectors, the kernels gain nothing by -O3, which takes up to twice as long. The portable ones do.
    flags: [isa === 'portable' ? '-O3' : '-O2', ...kernelFlags(isa)],
  }));

/** bfloat16.cpp for an instruction on operands in bfloat16, or for AMX's tiles emulated, which any processor runs. */
function productUnit(name: string, flags: readonly string[], newer?: readonly string[]): Unit {
  const all = ['-O3', ...COMMON, `-DDRMAS_ISA=${name}`, ...flags];
  return { source: 'bfloat16.cpp', object: `${name}.o`, flags: all, ...(newer && { newer }) };
}

const PRODUCT_UNITS: Readonly<Record<Exclude<Bfloat16Products, 'widened'>, Unit>> = {
  'amx-emulated': productUnit('amx_emulated', ['-DDRMAS_EMULATED_TILES']),
  'avx512-bf16': productUnit('avx512bf16', ISA_FLAGS.avx512, ['-mavx512bf16']),
  amx: productUnit('amx', ISA_FLAGS.avx512, ['-mamx-tile', '-mamx-bf16', '-mavx512bf16']),
};

/** The units of an addon with these kernels: the list of its sets, and addon.cpp, which is the same for all addons. */
function withAddon(kernels: readonly Unit[]): Unit[] {
  const tables = kernels.filter(({ source }) => source === 'kernels.cpp' || source === 'bfloat16.cpp');
  const names = tables.map(({ object }) => object.replace('.o', ''));
  const have = names.map((name) => `-DDRMAS_HAVE_${name}`);
  return [
    ...kernels,
    { source: 'sets.cpp', object: `sets-${names.join('-')}.o`, flags: ['-O2', ...COMMON, ...have] },
    { source: 'addon.cpp', object: 'addon.o', flags: ['-O1', ...COMMON, `-I${nodeHeaders().include}`] },
  ];
}

export function unitsOf({ isa, products }: KernelSet): Unit[] {
  return withAddon([...kernelUnits(isa), ...(products === 'widened' ? [] : [PRODUCT_UNITS[products]])]);
}

export function unitsFor(architecture: string): Unit[] {
  const { 'amx-emulated': emulated, 'avx512-bf16': pairs, amx } = PRODUCT_UNITS;
  // Least first: of a template of the standard library that several units have, the linker keeps the first, and that
  // must run on every processor.
  const portable = [...kernelUnits('portable'), emulated];
  return withAddon(
    architecture === 'x64' ? [...portable, ...kernelUnits('avx2'), ...kernelUnits('avx512'), pairs, amx] : portable,
  );
}
