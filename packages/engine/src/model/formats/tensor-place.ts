/** The places of files' tensors in the engine's buffers, and copies into and out of them. */
import { ArgumentError } from '../../errors.js';
import { isBfloat16, widen } from '../../tensor/bfloat16.js';
import type { WeightArray } from '../../tensor/kernel-arguments.js';
import type { WeightMemory } from '../../tensor/memory.js';
import { storedBits } from './safetensors-header.js';
import { type NamedTensor, rowLength, type TensorPiece, type TensorShape } from './tensor.js';

export interface TensorPlace<M extends WeightMemory = WeightArray> extends TensorShape {
  /** The buffer from the tensor's first number on. */
  readonly data: M;
  /**
   * The distance between rows in the buffer, for a matrix [outputs, inputs] whose transpose is a block of columns
   * there. Undefined if file and buffer have the same order.
   */
  readonly stride?: number;
}

/**
 * Copies a piece of the tensor into its place without rounding; a place in float32 accepts every format.
 * @throws ArgumentError when the place is in bfloat16 and the piece is not
 */
export function putPiece({ name, shape, data, stride }: TensorPlace, { dtype, first, bytes }: TensorPiece): void {
  const bits = storedBits(bytes, dtype);
  if (isBfloat16(data) && !isBfloat16(bits))
    throw new ArgumentError(`tensor "${name}": expected numbers in bfloat16, found ${dtype}`);
  if (stride !== undefined) {
    const columns = rowLength(shape);
    transpose(bitsOf(data).subarray(first / columns), stride, bits, columns, bits.length / columns, columns);
  } else if (isBfloat16(bits) && !isBfloat16(data)) widen(data.subarray(first), bits);
  else bitsOf(data).set(bits, first);
}

/**
 * The tensor in float32 and in the order of files: a copy, or the place's own buffer if it has this form.
 */
export function takeTensor({ name, shape, data, stride }: TensorPlace): NamedTensor {
  if (stride === undefined && !isBfloat16(data)) return { name, shape, data };
  const columns = rowLength(shape);
  const rows = shape[0] ?? 1;
  const copy = new Float32Array(rows * columns);
  if (stride !== undefined) transpose(bitsOf(copy), columns, bitsOf(data), stride, columns, rows);
  else if (isBfloat16(data)) widen(copy, data);
  return { name, shape, data: copy };
}

type Bits = Uint32Array | Uint16Array;

/** The numbers as bits, so that copies preserve the bits of a NaN too. */
const bitsOf = (data: WeightArray): Bits =>
  isBfloat16(data) ? data : new Uint32Array(data.buffer, data.byteOffset, data.length);

/**
 * The rows that are read side by side: so many cache lines stay in the cache while their columns are written as rows.
 */
const BLOCK = 32;

/** target[c · targetStride + r] = source[r · sourceStride + c], widened if only the source is in bfloat16. */
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
