import type { Kernels } from '../kernels.js';
import * as attention from './attention.js';
import * as embedding from './embedding.js';
import * as gate from './gate.js';
import * as head from './head.js';
import * as linear from './linear.js';
import * as norm from './norm.js';
import * as optimiser from './optimiser.js';
import * as rotary from './rotary.js';

/**
 * The kernels in plain TypeScript: the oracle that the fast ones are compared with, and what runs where nothing else can.
 * Every sum is taken in double precision, one term after another, and rounded to float32 once. Needs no Node.
 */
export function createReferenceKernels(): Kernels {
  return {
    name: 'reference',
    isa: 'typescript',
    threads: 1,
    allocate: (length) => new Float32Array(length),
    allocateBfloat16: (length) => new Uint16Array(length),
    allocateIntegers: (length) => new Int32Array(length),
    dispose: () => {},
    ...linear,
    ...norm,
    ...rotary,
    ...attention,
    ...gate,
    ...embedding,
    ...head,
    ...optimiser,
  };
}
