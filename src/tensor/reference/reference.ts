import type { Kernels } from '../kernels.js';
import { attention, attentionBackward, attentionCached, cacheCopy, cacheSlotSize } from './attention.js';
import { embed, embedBackward } from './embedding.js';
import { swiglu, swigluBackward } from './gate.js';
import { sampleTokens, tokenEntropyBackward, tokenLogprobs, tokenLogprobsBackward } from './head.js';
import { linear, linearWeightGradient, pack, packedSize } from './linear.js';
import { headNorm, headNormBackward, rmsNorm, rmsNormBackward } from './norm.js';
import { adamw, add, sumOfSquares } from './optimiser.js';
import { rope } from './rope.js';

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
    packedSize,
    pack,
    linear,
    linearWeightGradient,
    rmsNorm,
    rmsNormBackward,
    headNorm,
    headNormBackward,
    rope,
    attention,
    attentionBackward,
    cacheSlotSize,
    attentionCached,
    cacheCopy,
    swiglu,
    swigluBackward,
    embed,
    embedBackward,
    tokenLogprobs,
    tokenLogprobsBackward,
    tokenEntropyBackward,
    sampleTokens,
    sumOfSquares,
    add,
    adamw,
  };
}
