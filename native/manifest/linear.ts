import type { Entries } from './entry.js';

/** Linear layers. */
export const linearKernels = {
  packedSize: {
    header: 'kernels/products/linear.h',
    reference: 'linear.ts',
    computes: 'the number of elements that `pack` writes',
    parameters: ['inputs: size', 'outputs: size'],
    returns: 'size <= inputs * (outputs + 31)',
  },
  pack: {
    header: 'kernels/products/linear.h',
    reference: 'linear.ts',
    computes: 'rearranges a matrix, or its transpose, into the panels that `linear` reads in order',
    details:
      'With `transpose` false, `weight` is [inputs, outputs]. With `transpose` true it is stored as [outputs, inputs] and used as its transpose. The packed form is private to the implementation, and has the number format of the matrix. Throws a RangeError if one is in bfloat16 and the other is not.',
    parameters: [
      'packed: private weights[packedSize(inputs, outputs)]',
      'weight: const weights[inputs * outputs]',
      'inputs: size',
      'outputs: size',
      'transpose: bool',
    ],
  },
  linear: {
    header: 'kernels/products/linear.h',
    reference: 'linear.ts',
    computes: 'out = x W, or out + x W',
    details: 'W [inputs, outputs] is the matrix in `packed`. With `accumulate` the product is added to `out`.',
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
    header: 'kernels/products/weight-gradient.h',
    reference: 'linear.ts',
    computes: 'dWeight += xᵀ dOut',
    details: '`dWeight` is added to.',
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
  bfloat16PackedSize: {
    header: 'kernels/products/bfloat16.h',
    reference: 'bfloat16-products.ts',
    computes: 'the number of elements that `bfloat16Pack` writes',
    parameters: ['inputs: size', 'outputs: size'],
    returns: 'size <= (inputs + 31) * (outputs + 31)',
  },
  bfloat16Pack: {
    header: 'kernels/products/bfloat16.h',
    reference: 'bfloat16-products.ts',
    computes: 'a matrix, or its transpose, rounded to bfloat16, as panels that `bfloat16Linear` reads in order',
    details: 'The matrix may be in float32 or in bfloat16. The packed form is private to the implementation.',
    parameters: [
      'packed: private bf16[bfloat16PackedSize(inputs, outputs)]',
      'weight: const weights[inputs * outputs]',
      'inputs: size',
      'outputs: size',
      'transpose: bool',
    ],
  },
  bfloat16Linear: {
    header: 'kernels/products/bfloat16.h',
    reference: 'bfloat16-products.ts',
    computes: '`linear` of operands rounded to bfloat16',
    details:
      'Both factors of every product are rounded to the nearest number in bfloat16, ties to even, and subnormal numbers to 0. Sums are in float32.',
    sums: 'for each output one lane runs over pairs of inputs in order, in each the second before the first, one multiply-add after the other; in tiles (AMX) block by block of 32 inputs, in each the first and the second numbers of pairs apart',
    parameters: [
      'out: f32[rows * outputs]',
      'x: const f32[rows * inputs]',
      'packed: const private bf16[bfloat16PackedSize(inputs, outputs)]',
      'rows: size',
      'inputs: size',
      'outputs: size',
      'accumulate: bool',
    ],
  },
  bfloat16LinearWeightGradient: {
    header: 'kernels/products/bfloat16.h',
    reference: 'bfloat16-products.ts',
    computes: '`linearWeightGradient` of operands rounded to bfloat16',
    details: '`x` and `dOut` are rounded. `dWeight` is added to and keeps all of its bits.',
    sums: 'for each weight as `bfloat16Linear`, over pairs of rows',
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
