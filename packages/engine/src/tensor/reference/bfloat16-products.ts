/**
 * Products of operands rounded to bfloat16. Such a product is exact in float32 and every sum is rounded to it, so that
 * these have the very bits of the other kernels that sum in the same order: pair by pair, or in AMX's tiles.
 */
import { isBfloat16, toBfloat16, widen } from '../bfloat16.js';
import type { WeightArray } from '../kernel-arguments.js';
import type { HostKernels } from '../kernels.js';
import { unpackTransposed } from './blocks.js';

/** Sums run over pairs: an odd one out has a partner of 0. */
const evened = (count: number) => count + (count % 2);

/** Packed form: the columns one after another, [outputs, inputs], each with an even number of inputs. */
export const bfloat16PackedSize: HostKernels['bfloat16PackedSize'] = ({ inputs, outputs }) => evened(inputs) * outputs;

export const bfloat16Pack: HostKernels['bfloat16Pack'] = ({ packed, weight, inputs, outputs, transpose }) => {
  const numbers = toBfloat16(weight.subarray(0, inputs * outputs));
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
  widen(all, toBfloat16(numbers.subarray(0, length)));
  return all;
}

/** `start` plus the products of two lines [steps], numbers in bfloat16, in one order of sums. */
type SumOfProducts = (
  start: number,
  a: Float32Array,
  aAt: number,
  b: Float32Array,
  bAt: number,
  steps: number,
) => number;

/** Of each pair the second first. */
const inPairs: SumOfProducts = (start, a, aAt, b, bAt, steps) => {
  let sum = start;
  for (let k = 0; k < steps; k += 2) {
    sum = Math.fround(sum + (a[aAt + k + 1] as number) * (b[bAt + k + 1] as number));
    sum = Math.fround(sum + (a[aAt + k] as number) * (b[bAt + k] as number));
  }
  return sum;
};

/** The numbers of a line that one instruction of AMX multiplies. */
const BLOCK = 32;
/** From here on a sum of 24 bits rounds to a normal number of float32. */
const TINY = 2 ** -126 * (1 - 2 ** -25);

/** A sum as AMX rounds it: subnormal ones are 0, with their sign. */
const flushed = (sum: number) => (Math.abs(sum) < TINY ? 0 * sum : Math.fround(sum));

/** As AMX's TDPBF16PS (native/simd/tiles.h): of each block the first and the second numbers of pairs apart. */
const inTiles: SumOfProducts = (start, a, aAt, b, bAt, steps) => {
  let sum = start;
  for (let block = 0; block < steps; block += BLOCK) {
    let first = 0;
    let second = 0;
    for (let k = block; k < Math.min(steps, block + BLOCK); k += 2) {
      first = flushed(first + (a[aAt + k] as number) * (b[bAt + k] as number));
      second = flushed(second + (a[aAt + k + 1] as number) * (b[bAt + k + 1] as number));
    }
    sum = flushed(flushed(sum) + flushed(first + second));
  }
  return sum;
};

const linearBy =
  (chain: SumOfProducts): HostKernels['bfloat16Linear'] =>
  ({ out, x, packed, rows, inputs, outputs, accumulate }) => {
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

/** Rounds the matrix as `bfloat16Pack` does. */
const blockLinearTransposedBy =
  (chain: SumOfProducts): HostKernels['bfloat16BlockLinearTransposed'] =>
  (given) => {
    const { inputs, outputs } = given;
    const weight = unpackTransposed(given);
    const packed = new Uint16Array(bfloat16PackedSize({ inputs, outputs }));
    bfloat16Pack({ packed, weight, inputs, outputs, transpose: false });
    linearBy(chain)({ ...given, packed });
  };

const weightGradientBy =
  (chain: SumOfProducts): HostKernels['bfloat16LinearWeightGradient'] =>
  ({ dWeight, x, dOut, rows, inputs, outputs }) => {
    const steps = evened(rows);
    const factors = columns(rounded(x, rows * inputs), rows, inputs);
    const gradients = columns(rounded(dOut, rows * outputs), rows, outputs);
    for (let i = 0, at = 0; i < inputs; i++)
      for (let o = 0; o < outputs; o++, at++)
        dWeight[at] = chain(dWeight[at] as number, factors, i * steps, gradients, o * steps, steps);
  };

export const bfloat16Linear = linearBy(inPairs);
export const bfloat16BlockLinearTransposed = blockLinearTransposedBy(inPairs);
export const bfloat16LinearWeightGradient = weightGradientBy(inPairs);

/** The same, summed as AMX does. */
export const productsInTiles = {
  bfloat16Products: 'amx-emulated',
  bfloat16Linear: linearBy(inTiles),
  bfloat16BlockLinearTransposed: blockLinearTransposedBy(inTiles),
  bfloat16LinearWeightGradient: weightGradientBy(inTiles),
} as const;
