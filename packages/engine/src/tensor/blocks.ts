/**
 * Matrices in blocks, as GGUF files store them: 32 inputs of an output are small whole numbers with a common scale, and
 * in one format an offset. Nothing trains such a matrix. Kernels unpack its numbers exactly, so a product has the same
 * bits as with the numbers in float32.
 *
 * The layout is the same for all kernels: tiles of 16 outputs and 32 inputs, for each 16 outputs one after another. A
 * tile is 16 blocks side by side: 16 scales in float32, 16 offsets if the format has them, and then the bytes of the
 * blocks, first those with the first input of each output. In 4 bits a byte holds inputs i and i + 16.
 */
import type { Integers } from './memory.js';

/** The name of a format in GGUF files. */
export type BlockFormat = 'Q8_0' | 'Q4_0' | 'Q4_1';
/** The formats, by the number that kernels know them by. */
export const BLOCK_FORMATS: readonly BlockFormat[] = ['Q8_0', 'Q4_0', 'Q4_1'];

/** Inputs of a block. */
export const BLOCK = 32;
/** Outputs of a tile. */
const OUTPUTS = 16;

/** The bytes of a block's numbers, and whether it has an offset. */
const PARTS: Readonly<Record<BlockFormat, { readonly bytes: number; readonly offset: boolean }>> = {
  Q8_0: { bytes: 32, offset: false },
  Q4_0: { bytes: 16, offset: false },
  Q4_1: { bytes: 16, offset: true },
};

/** A matrix W [inputs, outputs] in blocks. */
export interface BlockMatrix<Memory = Integers> {
  readonly format: BlockFormat;
  readonly words: Memory; // [blockWords]
  readonly inputs: number;
  readonly outputs: number;
}

/** A block of a file: an output's scale, offset and bytes. */
export interface Block {
  readonly scale: number;
  readonly offset: number;
  /** The bytes from `at` on. */
  readonly bytes: Uint8Array;
  readonly at: number;
}

const tileWords = (format: BlockFormat) => {
  const { bytes, offset } = PARTS[format];
  return OUTPUTS * (1 + (offset ? 1 : 0) + bytes / 4);
};

/** The words of 32 bits of a matrix. */
export function blockWords({ format, inputs, outputs }: Omit<BlockMatrix, 'words'>): number {
  return Math.ceil(inputs / BLOCK) * Math.ceil(outputs / OUTPUTS) * tileWords(format);
}

/** The memory of a matrix as scales and offsets and as bytes, and the word at which an output's tile begins. */
function tilesOf({ format, words, inputs }: BlockMatrix<Int32Array>) {
  const { bytes, offset } = PARTS[format];
  const [each, across] = [tileWords(format), Math.ceil(inputs / BLOCK)];
  const inBytes = format === 'Q8_0';
  const zero = format === 'Q4_0' ? 8 : 0;
  return {
    floats: new Float32Array(words.buffer, words.byteOffset, words.length),
    numbers: new Uint8Array(words.buffer, words.byteOffset, 4 * words.length),
    bytes,
    offset,
    /** Where the bytes of a tile begin within it. */
    bytesAt: 4 * OUTPUTS * (offset ? 2 : 1),
    tileAt: (output: number, block: number) => (Math.floor(output / OUTPUTS) * across + block) * each,
    /** Where the byte of input k begins within these bytes. */
    rowAt: (k: number) => (inBytes ? k : k % 16) * OUTPUTS,
    /** The whole number of input k in its byte. */
    wholeIn: (byte: number, k: number) => (inBytes ? (byte << 24) >> 24 : ((byte >> (k < 16 ? 0 : 4)) & 15) - zero),
  };
}

export function blockWriter(matrix: BlockMatrix<Int32Array>): (output: number, block: number, from: Block) => void {
  const { floats, numbers, bytes, offset, bytesAt, tileAt } = tilesOf(matrix);
  return (output, block, from) => {
    const tile = tileAt(output, block);
    const lane = output % OUTPUTS;
    floats[tile + lane] = from.scale;
    if (offset) floats[tile + OUTPUTS + lane] = from.offset;
    const to = 4 * tile + bytesAt + lane;
    for (let i = 0; i < bytes; i++) numbers[to + i * OUTPUTS] = from.bytes[from.at + i] as number;
  };
}

const { fround } = Math;

export interface WholeBlock {
  readonly scale: number;
  /** Undefined if the format has none. */
  readonly offset: number | undefined;
  /** The whole numbers of the block's inputs, before scale and offset. */
  readonly numbers: readonly number[]; // [BLOCK]
}

export function blockReader(matrix: BlockMatrix<Int32Array>): (output: number, block: number) => WholeBlock {
  const { floats, numbers, offset, bytesAt, tileAt, rowAt, wholeIn } = tilesOf(matrix);
  return (output, block) => {
    const tile = tileAt(output, block);
    const lane = output % OUTPUTS;
    const from = 4 * tile + bytesAt + lane;
    return {
      scale: floats[tile + lane] as number,
      offset: offset ? (floats[tile + OUTPUTS + lane] as number) : undefined,
      numbers: Array.from({ length: BLOCK }, (_, k) => wholeIn(numbers[from + rowAt(k)] as number, k)),
    };
  };
}

/** The numbers of some outputs in float32: [count, inputs], the order of files. */
export function unpackOutputs(matrix: BlockMatrix<Int32Array>, first: number, count: number): Float32Array {
  const { inputs } = matrix;
  const unpacked = new Float32Array(count * inputs);
  for (let n = 0; n < count; ) {
    const lanes = Math.min(count - n, OUTPUTS - ((first + n) % OUTPUTS)); // those of one tile
    unpackLanes(matrix, first + n, lanes, { to: unpacked.subarray(n * inputs), outputStride: inputs, inputStride: 1 });
    n += lanes;
  }
  return unpacked;
}

/** Writes the whole matrix in float32, [inputs, outputs], or [outputs, inputs] with `transpose`. */
export function unpackMatrix(matrix: BlockMatrix<Int32Array>, to: Float32Array, transpose: boolean): void {
  const { inputs, outputs } = matrix;
  const [outputStride, inputStride] = transpose ? [inputs, 1] : [1, outputs];
  for (let first = 0; first < outputs; first += OUTPUTS) {
    const lanes = Math.min(OUTPUTS, outputs - first);
    unpackLanes(matrix, first, lanes, { to: to.subarray(first * outputStride), outputStride, inputStride });
  }
}

/** The place of unpacked numbers: input k of the n-th output is at n · outputStride + k · inputStride. */
interface Unpacked {
  readonly to: Float32Array;
  readonly outputStride: number;
  readonly inputStride: number;
}

/** Unpacks outputs of one tile. A plain loop: a model has a hundred million numbers, and a run's start unpacks all. */
function unpackLanes(
  matrix: BlockMatrix<Int32Array>,
  first: number,
  lanes: number,
  { to, outputStride, inputStride }: Unpacked,
): void {
  const { inputs } = matrix;
  const { floats, numbers, offset, bytesAt, tileAt, rowAt, wholeIn } = tilesOf(matrix);
  const lane = first % OUTPUTS;
  for (let block = 0; block * BLOCK < inputs; block++) {
    const tile = tileAt(first, block);
    const scales = tile + lane;
    const bytes = 4 * tile + bytesAt + lane;
    const size = Math.min(BLOCK, inputs - block * BLOCK);
    for (let k = 0; k < size; k++) {
      const row = bytes + rowAt(k);
      const at = (block * BLOCK + k) * inputStride;
      for (let n = 0; n < lanes; n++) {
        const product = fround((floats[scales + n] as number) * wholeIn(numbers[row + n] as number, k));
        to[at + n * outputStride] = offset ? product + (floats[scales + OUTPUTS + n] as number) : product;
      }
    }
  }
}
