import type { Entries } from './entry.js';

/** Linear layers. */
export const linearKernels = {
  packedSize: {
    header: 'kernels/linear.h',
    reference: 'linear.ts',
    computes: 'the elements that `pack` writes',
    parameters: ['inputs: size', 'outputs: size'],
    returns: 'size <= inputs * (outputs + 31)',
  },
  pack: {
    header: 'kernels/linear.h',
    reference: 'linear.ts',
    computes: 'a matrix, or its transpose, as panels that `linear` reads in order',
    parameters: [
      'packed: private weights[packedSize(inputs, outputs)]',
      'weight: const weights[inputs * outputs]',
      'inputs: size',
      'outputs: size',
      'transpose: bool',
    ],
  },
  linear: {
    header: 'kernels/linear.h',
    reference: 'linear.ts',
    computes: 'out = x W, or out + x W',
    sums: 'for each output one lane runs over the inputs in order, one fused multiply-add after the other, whatever the tile, block or thread, and whether the weights are in float32 or bfloat16; with `accumulate` the finished sum is added once',
    parameters: [
      'out: f32[rows * outputs]',
      'x: const f32[rows * inputs]',
      'packed: const private weights[packedSize(inputs, outputs)]',
      'rows: size',
      'inputs: size',
      'outputs: size',
      'accumulate: bool',
    ],
  },
  linearWeightGradient: {
    header: 'kernels/linear.h',
    reference: 'linear.ts',
    computes: 'dWeight += xᵀ dOut',
    sums: 'for each weight one lane over the rows in order',
    parameters: [
      'dWeight: f32[inputs * outputs]',
      'x: const f32[rows * inputs]',
      'dOut: const f32[rows * outputs]',
      'rows: size',
      'inputs: size',
      'outputs: size',
    ],
  },
} as const satisfies Entries;
