/** The parts that the addon is compiled from, and their flags. */
import { createRequire } from 'node:module';

// A CommonJS package without types.
const require = createRequire(import.meta.url);

export interface Unit {
  readonly source: string;
  readonly object: string;
  readonly flags: readonly string[];
  /** Flags that older compilers do not know. Without them the unit is smaller. */
  readonly newer?: readonly string[];
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

/** The directory of Node's headers for addons, and of the lists of Node's exports. */
export function nodeHeaders() {
  const { include_dir: include, def_paths: definitions } = require('node-api-headers') as {
    readonly include_dir: string;
    readonly def_paths: { readonly node_api_def: string };
  };
  return { include, definitions: definitions.node_api_def };
}

/** The instructions for operands in bfloat16, with the compiler flags that each needs in addition to AVX-512's. */
const BFLOAT16_FLAGS = { avx512bf16: ['-mavx512bf16'], amx: ['-mamx-tile', '-mamx-bf16', '-mavx512bf16'] };

/** The flags that bfloat16.cpp is compiled with for AMX's tiles emulated, which any processor runs. */
const emulatedTilesFlags = [...COMMON, '-DDRMAS_ISA=amx_emulated', '-DDRMAS_EMULATED_TILES'];

/**
 * The units of an architecture as Node names it: kernels.cpp once for each instruction set, bfloat16.cpp once for each
 * instruction on operands in bfloat16 and once for emulated tiles, and addon.cpp.
 */
export function unitsFor(architecture: string): Unit[] {
  const x64 = architecture === 'x64';
  const kernels = (isa: Isa) => ({ source: 'kernels.cpp', object: `${isa}.o`, flags: ['-O3', ...kernelFlags(isa)] });
  const dispatch = x64 ? ['-DDRMAS_HAVE_AVX512', '-DDRMAS_HAVE_AVX2'] : [];
  // Least first: of a template of the standard library that several units have, the linker keeps the first, and that
  // must run on every processor.
  return [
    kernels('portable'),
    { source: 'bfloat16.cpp', object: 'amx_emulated.o', flags: ['-O3', ...emulatedTilesFlags] },
    ...(x64 ? [kernels('avx2'), kernels('avx512')] : []),
    ...Object.entries(x64 ? BFLOAT16_FLAGS : {}).map(([name, newer]) => ({
      source: 'bfloat16.cpp',
      object: `${name}.o`,
      flags: ['-O3', ...COMMON, `-DDRMAS_ISA=${name}`, ...ISA_FLAGS.avx512],
      newer,
    })),
    {
      source: 'addon.cpp',
      object: 'addon.o',
      flags: ['-O2', ...COMMON, ...dispatch, `-I${nodeHeaders().include}`],
    },
  ];
}
