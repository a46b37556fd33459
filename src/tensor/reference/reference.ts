import { hostMemory } from '../host-memory.js';
import type { HostKernels } from '../kernels.js';
import { inTiles, type NarrowProducts } from '../narrow-kernels.js';
import { productsInTiles } from './narrow.js';
import { referenceKernels } from './reference-kernels.js';

/**
 * The kernels in plain TypeScript: the oracle that the fast ones are compared with, and what runs where nothing else
 * can. Every sum is taken in double precision, one term after another, and rounded to float32 once. Products of numbers
 * in bfloat16 have the order and the bits of `narrow`. Needs no Node.
 */
export function createReferenceKernels(
  narrow: Extract<NarrowProducts, 'widened' | 'amx-emulated'> = 'widened',
): HostKernels {
  return {
    name: 'reference',
    isa: inTiles(narrow) ? 'typescript-amx' : 'typescript',
    narrowProducts: 'widened',
    threads: 1,
    allocate: (length) => new Float32Array(length),
    allocateBfloat16: (length) => new Uint16Array(length),
    allocateIntegers: (length) => new Int32Array(length),
    dispose: () => {},
    ...hostMemory,
    ...referenceKernels,
    ...(inTiles(narrow) ? productsInTiles : {}),
  };
}
