/** Where the tensors of files stand in the engine's buffers, and the ways in and out. */
import { type NamedTensor, rowLength, type TensorPiece, type TensorShape } from './tensor.js';
import { widen } from './widen.js';

export interface Place extends TensorShape {
  /** From the tensor's first number on. */
  readonly data: Float32Array;
  /**
   * Of a matrix [outputs, inputs] whose transpose is a block of columns here: numbers from one row to the next. Where it is
   * undefined the order is the same on both sides.
   */
  readonly stride?: number;
}

/** Puts a piece of the tensor into its place, as float32: exactly. */
export function putPiece({ shape, data, stride }: Place, { dtype, first, bytes }: TensorPiece): void {
  const bits = bitsOf(data);
  const length = bytes.length / (dtype === 'F32' ? 4 : 2);
  if (stride === undefined) {
    widen(bits.subarray(first, first + length), bytes, dtype);
    return;
  }
  const columns = rowLength(shape);
  const own = new Uint32Array(length);
  widen(own, bytes, dtype);
  transpose(bits.subarray(first / columns), stride, own, columns, length / columns, columns);
}

/** A copy of the tensor, as files have it. */
export function takeTensor({ name, shape, data, stride }: Place): NamedTensor {
  if (stride === undefined) return { name, shape, data: data.slice() };
  const columns = rowLength(shape);
  const rows = shape[0] ?? 1;
  const own = new Float32Array(rows * columns);
  transpose(bitsOf(own), columns, bitsOf(data), stride, columns, rows);
  return { name, shape, data: own };
}

/** Bits, so that a number that is none keeps its own too. */
const bitsOf = (data: Float32Array) => new Uint32Array(data.buffer, data.byteOffset, data.length);

/** Rows that are read side by side: as many cache lines stay at hand while their columns are written as rows. */
const BLOCK = 32;

/** target[c · targetStride + r] = source[r · sourceStride + c] */
function transpose(
  target: Uint32Array,
  targetStride: number,
  source: Uint32Array,
  sourceStride: number,
  rows: number,
  columns: number,
): void {
  for (let from = 0; from < rows; from += BLOCK) {
    const count = Math.min(BLOCK, rows - from);
    for (let c = 0; c < columns; c++) {
      let to = c * targetStride + from;
      let at = from * sourceStride + c;
      for (let n = 0; n < count; n++, to++, at += sourceStride) target[to] = source[at] as number;
    }
  }
}
