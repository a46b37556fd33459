/**
 * Products of operands rounded to bfloat16. Such a product is exact in float32 and every sum is rounded to it, so that
 * these have the very bits of the other kernels.
 */
import { isBfloat16, narrowed, widen } from '../bfloat16.js';
import type { WeightArray } from '../kernel-arguments.js';
import type { Kernels } from '../kernels.js';

/** Sums run over pairs: an odd one out has a partner of 0. */
const evened = (count: number) => count + (count % 2);

/** Packed form: the columns one after another, [outputs, inputs], each with an even number of inputs. */
export const packedNarrowSize: Kernels['packedNarrowSize'] = (inputs, outputs) => evened(inputs) * outputs;

export const packNarrow: Kernels['packNarrow'] = (packed, weight, inputs, outputs, transpose) => {
  const numbers = narrowed(weight.subarray(0, inputs * outputs));
  packed.set(transpose ? lines(numbers, outputs, inputs) : columns(numbers, inputs, outputs));
};

/** The rows of a matrix [count, length], each with an even length. */
function lines<W extends WeightArray>(matrix: W, count: number, length: number): W {
  const even = empty(matrix, count * evened(length));
  for (let r = 0; r < count; r++) even.set(matrix.subarray(r * length, (r + 1) * length), r * evened(length));
  return even;
}

/** The columns of a matrix [length, count], each with an even length. */
function columns<W extends WeightArray>(matrix: W, length: number, count: number): W {
  const even = empty(matrix, count * evened(length));
  for (let i = 0, at = 0; i < length; i++)
    for (let o = 0; o < count; o++) even[o * evened(length) + i] = matrix[at++] as number;
  return even;
}

const empty = <W extends WeightArray>(like: W, length: number): W =>
  (isBfloat16(like) ? new Uint16Array(length) : new Float32Array(length)) as W;

/** The first `length` of the numbers, rounded. */
function rounded(numbers: Float32Array, length: number): Float32Array {
  const all = new Float32Array(length);
  widen(all, narrowed(numbers.subarray(0, length)));
  return all;
}

/** `start` plus the products of two lines [steps], of each pair the second first. */
function chain(start: number, a: Float32Array, aAt: number, b: Float32Array, bAt: number, steps: number): number {
  let sum = start;
  for (let k = 0; k < steps; k += 2) {
    sum = Math.fround(sum + (a[aAt + k + 1] as number) * (b[bAt + k + 1] as number));
    sum = Math.fround(sum + (a[aAt + k] as number) * (b[bAt + k] as number));
  }
  return sum;
}

export const linearNarrow: Kernels['linearNarrow'] = (out, x, packed, rows, inputs, outputs, accumulate) => {
  const steps = evened(inputs);
  const factors = lines(rounded(x, rows * inputs), rows, inputs);
  const weights = new Float32Array(outputs * steps);
  widen(weights, packed.subarray(0, outputs * steps));
  for (let r = 0, at = 0; r < rows; r++)
    for (let o = 0; o < outputs; o++, at++) {
      const sum = chain(0, factors, r * steps, weights, o * steps, steps);
      out[at] = accumulate ? (out[at] as number) + sum : sum;
    }
};

export const linearNarrowWeightGradient: Kernels['linearNarrowWeightGradient'] = (
  dWeight,
  x,
  dOut,
  rows,
  inputs,
  outputs,
) => {
  const steps = evened(rows);
  const factors = columns(rounded(x, rows * inputs), rows, inputs);
  const gradients = columns(rounded(dOut, rows * outputs), rows, outputs);
  for (let i = 0, at = 0; i < inputs; i++)
    for (let o = 0; o < outputs; o++, at++)
      dWeight[at] = chain(dWeight[at] as number, factors, i * steps, gradients, o * steps, steps);
};
