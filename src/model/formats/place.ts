/** Where the tensors of files stand in the engine's buffers, and the ways in and out. */
import { ArgumentError } from '../../core/errors.js';
import { isBfloat16, widen } from '../../tensor/bfloat16.js';
import type { WeightArray } from '../../tensor/kernels.js';
import { storedBits } from './stored-bits.js';
import { type NamedTensor, rowLength, type TensorPiece, type TensorShape } from './tensor.js';

export interface Place extends TensorShape {
  /** From the tensor's first number on. */
  readonly data: WeightArray;
  /**
   * Of a matrix [outputs, inputs] whose transpose is a block of columns here: numbers from one row to the next. Where it is
   * undefined the order is the same on both sides.
   */
  readonly stride?: number;
}

/**
 * Puts a piece of the tensor into its place, exactly: a place in float32 takes any numbers.
 * @throws ArgumentError when the place is in bfloat16 and the piece is not.
 */
export function putPiece({ name, shape, data, stride }: Place, { dtype, first, bytes }: TensorPiece): void {
  const own = storedBits(bytes, dtype);
  if (isBfloat16(data) && !isBfloat16(own))
    throw new ArgumentError(`tensor "${name}": expected numbers in bfloat16, found ${dtype}`);
  if (stride !== undefined) {
    const columns = rowLength(shape);
    transpose(bitsOf(data).subarray(first / columns), stride, own, columns, own.length / columns, columns);
  } else if (isBfloat16(own) && !isBfloat16(data)) widen(data.subarray(first), own);
  else bitsOf(data).set(own, first);
}

/** The tensor in float32, as files have it: a copy, or the place's own buffer where that has it so. */
export function takeTensor({ name, shape, data, stride }: Place): NamedTensor {
  if (stride === undefined && !isBfloat16(data)) return { name, shape, data };
  const columns = rowLength(shape);
  const rows = shape[0] ?? 1;
  const own = new Float32Array(rows * columns);
  if (stride !== undefined) transpose(bitsOf(own), columns, bitsOf(data), stride, columns, rows);
  else if (isBfloat16(data)) widen(own, data);
  return { name, shape, data: own };
}

/** Bits of numbers in float32, or in bfloat16. */
type Bits = Uint32Array | Uint16Array;

/** Not the numbers, so that one that is not a number keeps its own bits too. */
const bitsOf = (data: WeightArray): Bits =>
  isBfloat16(data) ? data : new Uint32Array(data.buffer, data.byteOffset, data.length);

/** Rows that are read side by side: as many cache lines stay at hand while their columns are written as rows. */
const BLOCK = 32;

/** target[c · targetStride + r] = source[r · sourceStride + c], widened where only the source is in bfloat16. */
function transpose(
  target: Bits,
  targetStride: number,
  source: Bits,
  sourceStride: number,
  rows: number,
  columns: number,
): void {
  const shift = target.BYTES_PER_ELEMENT > source.BYTES_PER_ELEMENT ? 16 : 0;
  for (let from = 0; from < rows; from += BLOCK) {
    const count = Math.min(BLOCK, rows - from);
    for (let c = 0; c < columns; c++) {
      let to = c * targetStride + from;
      let at = from * sourceStride + c;
      for (let n = 0; n < count; n++, to++, at += sourceStride) target[to] = (source[at] as number) << shift;
    }
  }
}
