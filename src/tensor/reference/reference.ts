import type { Kernels } from '../kernels.js';
import { referenceKernels } from './reference-kernels.js';

/**
 * The kernels in plain TypeScript: the oracle that the fast ones are compared with, and what runs where nothing else
 * can. Every sum is taken in double precision, one term after another, and rounded to float32 once. Needs no Node.
 */
export function createReferenceKernels(): Kernels {
  return {
    name: 'reference',
    isa: 'typescript',
    narrowProducts: 'widened',
    threads: 1,
    allocate: (length) => new Float32Array(length),
    allocateBfloat16: (length) => new Uint16Array(length),
    allocateIntegers: (length) => new Int32Array(length),
    dispose: () => {},
    ...referenceKernels,
  };
}
