/**
 * The number formats of GGUF tensors. A quantised row is a sequence of blocks: small whole numbers with a scale, and in
 * some formats an offset, for each block (https://github.com/ggml-org/ggml, `ggml-common.h` has the layouts).
 */
import { BLOCK, type Block, type BlockFormat, type BlockMatrix, blockWriter } from '../../../tensor/blocks.js';
import { bytesOf, storedBits, type TensorDtype } from '../safetensors-header.js';

export interface GgufFormat {
  readonly name: string;
  /** The format in which the numbers are read: float32 if they lie in blocks. */
  readonly dtype: TensorDtype;
  /** The numbers of a block; 1 in formats without blocks. A row has whole blocks. */
  readonly numbers: number;
  /** The bytes of a block. */
  readonly bytes: number;
  /** Writes the numbers of the block at `at`, rounded to float32 after each operation. Absent in formats of one number.
   * */
  readonly unpack?: Unpack;
}

export const bytesIn = ({ numbers, bytes }: GgufFormat, shape: readonly number[]): number =>
  (shape.reduce((a, b) => a * b, 1) / numbers) * bytes;

type Unpack = (blocks: Uint8Array, at: number, numbers: Float32Array, to: number) => void;

const { fround } = Math;

/** The float16 numbers by their bits. */
let halves: Float32Array | undefined;

function half(bytes: Uint8Array, at: number): number {
  halves ??= new Float32Array(
    storedBits(new Uint8Array(Uint16Array.from({ length: 2 ** 16 }, (_, bits) => bits).buffer), 'F16').buffer,
  );
  return halves[byteAt(bytes, at) | (byteAt(bytes, at + 1) << 8)] as number;
}

const byteAt = (bytes: Uint8Array, at: number) => bytes[at] as number;
const signed = (byte: number) => (byte << 24) >> 24;

/** 32 numbers of 4 bits: the low halves of 16 bytes, then their high halves. */
const fourBits =
  (bytes: number, offset: 'centre' | 'stored'): Unpack =>
  (blocks, at, numbers, to) => {
    const scale = half(blocks, at);
    const least = offset === 'stored' ? half(blocks, at + 2) : -0; // x + -0 is x, also for x = -0
    const centre = offset === 'centre' ? 8 : 0;
    const from = at + bytes - 16;
    for (let i = 0; i < 16; i++) {
      const pair = byteAt(blocks, from + i);
      numbers[to + i] = fround(scale * ((pair & 15) - centre)) + least;
      numbers[to + 16 + i] = fround(scale * ((pair >> 4) - centre)) + least;
    }
  };

/** As `fourBits`, with the fifth bits of all 32 numbers in 4 bytes before. */
const fiveBits =
  (bytes: number, offset: 'centre' | 'stored'): Unpack =>
  (blocks, at, numbers, to) => {
    const scale = half(blocks, at);
    const least = offset === 'stored' ? half(blocks, at + 2) : -0; // x + -0 is x, also for x = -0
    const centre = offset === 'centre' ? 16 : 0;
    const from = at + bytes - 16;
    for (let i = 0; i < 32; i++) {
      const low = (byteAt(blocks, from + (i & 15)) >> (i & 16 ? 4 : 0)) & 15;
      const fifth = (byteAt(blocks, from - 4 + (i >> 3)) >> (i & 7)) & 1;
      numbers[to + i] = fround(scale * (low + (fifth << 4) - centre)) + least;
    }
  };

const eightBits: Unpack = (blocks, at, numbers, to) => {
  const scale = half(blocks, at);
  for (let i = 0; i < 32; i++) numbers[to + i] = scale * signed(byteAt(blocks, at + 2 + i));
};

/**
 * 256 numbers in 8 groups of 32, with a scale and an offset of 6 bits for each group. The groups' 4-bit numbers lie in
 * pairs of groups: the low halves of 32 bytes, then their high halves. `fifths`: the fifth bits lie in 32 bytes before.
 */
const grouped =
  (fifths: boolean): Unpack =>
  (blocks, at, numbers, to) => {
    const scale = half(blocks, at);
    const least = half(blocks, at + 2);
    const scales = at + 4;
    const high = scales + 12;
    const low = fifths ? high + 32 : high;
    for (let group = 0; group < 8; group++) {
      // Four groups have their 6 bits whole; the other four share bytes, and have 2 bits above those of the first.
      const byte = (i: number) => byteAt(blocks, scales + i);
      const ofScale = group < 4 ? byte(group) & 63 : (byte(group + 4) & 15) | ((byte(group - 4) >> 6) << 4);
      const ofLeast = group < 4 ? byte(group + 4) & 63 : (byte(group + 4) >> 4) | ((byte(group) >> 6) << 4);
      const step = fround(scale * ofScale);
      const floor = fround(least * ofLeast);
      const from = low + 32 * (group >> 1);
      const shift = group & 1 ? 4 : 0;
      for (let i = 0; i < 32; i++) {
        const fifth = fifths ? ((byteAt(blocks, high + i) >> group) & 1) << 4 : 0;
        numbers[to + 32 * group + i] = fround(step * (((byteAt(blocks, from + i) >> shift) & 15) + fifth)) - floor;
      }
    }
  };

/** 256 numbers of 6 bits, with a scale of 8 bits for each 16: 4 low bits, 2 high bits, scales, then their scale. */
const sixBits: Unpack = (blocks, at, numbers, to) => {
  const scale = half(blocks, at + 208);
  for (let i = 0; i < 256; i++) {
    const side = i >> 7;
    const quarter = (i >> 5) & 3;
    const column = i & 31;
    const low = byteAt(blocks, at + 64 * side + 32 * (quarter & 1) + column) >> (quarter & 2 ? 4 : 0);
    const high = byteAt(blocks, at + 128 + 32 * side + column) >> (2 * quarter);
    const step = fround(scale * signed(byteAt(blocks, at + 192 + (i >> 4))));
    numbers[to + i] = step * (((low & 15) | ((high & 3) << 4)) - 32);
  }
};

const plain = (dtype: TensorDtype): GgufFormat => ({ name: dtype, dtype, numbers: 1, bytes: bytesOf[dtype] });
const blocks = (name: string, numbers: number, bytes: number, unpack: Unpack): GgufFormat => ({
  name,
  dtype: 'F32',
  numbers,
  bytes,
  unpack,
});

export const FORMATS: ReadonlyMap<number, GgufFormat> = new Map([
  [0, plain('F32')],
  [1, plain('F16')],
  [30, plain('BF16')],
  [2, blocks('Q4_0', 32, 18, fourBits(18, 'centre'))],
  [3, blocks('Q4_1', 32, 20, fourBits(20, 'stored'))],
  [6, blocks('Q5_0', 32, 22, fiveBits(22, 'centre'))],
  [7, blocks('Q5_1', 32, 24, fiveBits(24, 'stored'))],
  [8, blocks('Q8_0', 32, 34, eightBits)],
  [12, blocks('Q4_K', 256, 144, grouped(false))],
  [13, blocks('Q5_K', 256, 176, grouped(true))],
  [14, blocks('Q6_K', 256, 210, sixBits)],
]);

const OTHERS: Readonly<Record<number, string>> = {
  9: 'Q8_1',
  10: 'Q2_K',
  11: 'Q3_K',
  15: 'Q8_K',
  16: 'IQ2_XXS',
  17: 'IQ2_XS',
  18: 'IQ3_XXS',
  19: 'IQ1_S',
  20: 'IQ4_NL',
  21: 'IQ3_S',
  22: 'IQ2_S',
  23: 'IQ4_XS',
  28: 'F64',
  29: 'IQ1_M',
  34: 'TQ1_0',
  35: 'TQ2_0',
  39: 'MXFP4',
};

export const formatName = (type: number): string => FORMATS.get(type)?.name ?? OTHERS[type] ?? `number ${type}`;

/** Writes whole rows of blocks into a matrix, the first of them as its output number `first`. */
export function putBlocks(matrix: BlockMatrix<Int32Array>, first: number, stored: Uint8Array): void {
  const { bytes } = formatNamed(matrix.format);
  const perRow = matrix.inputs / BLOCK;
  const put = blockWriter(matrix);
  for (let i = 0; i * bytes < stored.length; i++)
    put(first + Math.floor(i / perRow), i % perRow, blockAt(matrix.format, stored, i * bytes));
}

/** The index of the first block whose numbers are not finite, or -1. */
export function firstInfiniteBlock(format: BlockFormat, stored: Uint8Array): number {
  const { bytes } = formatNamed(format);
  for (let i = 0; i * bytes < stored.length; i++) {
    const { scale, offset } = blockAt(format, stored, i * bytes);
    if (!Number.isFinite(scale) || !Number.isFinite(offset)) return i;
  }
  return -1;
}

function blockAt(format: BlockFormat, stored: Uint8Array, at: number): Block {
  const hasOffset = format === 'Q4_1';
  const offset = hasOffset ? half(stored, at + 2) : 0;
  return { scale: half(stored, at), offset, bytes: stored, at: at + (hasOffset ? 4 : 2) };
}

const formatNamed = (name: BlockFormat): GgufFormat =>
  [...FORMATS.values()].find((each) => each.name === name) as GgufFormat;

/** The bytes of whole blocks as little-endian float32; bytes of formats without blocks as they are. */
export function unpackBlocks({ numbers, bytes, unpack }: GgufFormat, stored: Uint8Array): Uint8Array {
  if (unpack === undefined) return stored;
  const count = stored.length / bytes;
  const unpacked = new Float32Array(count * numbers);
  for (let block = 0; block < count; block++) unpack(stored, block * bytes, unpacked, block * numbers);
  return new Uint8Array(unpacked.buffer);
}
