import { type Bfloat16Products, inTiles } from '../bfloat16.js';
import { hostKernels, hostMemory } from '../host-kernels.js';
import type { HostKernels } from '../kernels.js';
import { productsInTiles } from './bfloat16-products.js';
import { referenceKernels } from './reference-kernels.js';

/**
 * The kernels in plain TypeScript: the oracle that fast kernels are compared with, and the fallback if nothing else
 * can. Every sum is taken in double precision, one term after another, and rounded to float32 once. Products of numbers
 * in bfloat16 are summed in the order, and have the bits, of `bfloat16Products`. Needs no Node.
 */
export function createReferenceKernels(
  bfloat16Products: Extract<Bfloat16Products, 'widened' | 'amx-emulated'> = 'widened',
): HostKernels {
  return {
    name: 'reference',
    isa: inTiles(bfloat16Products) ? 'typescript-amx' : 'typescript',
    bfloat16Products: 'widened',
    threads: 1,
    allocate: (length) => new Float32Array(length),
    allocateBfloat16: (length) => new Uint16Array(length),
    allocateIntegers: (length) => new Int32Array(length),
    dispose: () => {},
    ...hostMemory,
    ...hostKernels,
    ...referenceKernels,
    ...(inTiles(bfloat16Products) ? productsInTiles : {}),
  };
}
