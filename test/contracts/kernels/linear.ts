import {
  BLOCK,
  BLOCK_FORMATS,
  type BlockMatrix,
  blockWords,
  blockWriter,
  unpackMatrix,
  unpackOutputs,
} from '@drmas/engine/internal/tensor/blocks';
import { createReferenceKernels, type HostKernels } from '@drmas/engine/kernels';
import { RandomStream } from '@drmas/engine/math';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blank, body, close, floats, get, noise, pickRows, ROWS, type Subject, sameBits, WIDTHS } from './support.js';

interface Sizes {
  readonly rows: number;
  readonly inputs: number;
  readonly outputs: number;
}

function packed(kernels: HostKernels, weight: Float32Array, inputs: number, outputs: number, transpose = false) {
  const buffer = floats(kernels, new Float32Array(kernels.packedSize({ inputs, outputs })));
  kernels.pack({ packed: buffer, weight: floats(kernels, weight), inputs, outputs, transpose });
  return buffer;
}

function product(x: Float32Array, weight: Float32Array, { rows, inputs, outputs }: Sizes): Float64Array {
  const out = new Float64Array(rows * outputs);
  for (let r = 0; r < rows; r++) {
    for (let i = 0; i < inputs; i++) {
      const value = x[r * inputs + i] as number;
      for (let o = 0, at = r * outputs; o < outputs; o++, at++) {
        out[at] = (out[at] as number) + value * (weight[i * outputs + o] as number);
      }
    }
  }
  return out;
}

function transposed(x: Float32Array, rows: number, columns: number): Float32Array {
  const out = new Float32Array(x.length);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) out[c * rows + r] = get(x, r * columns + c);
  return out;
}

function run(
  kernels: HostKernels,
  x: Float32Array,
  weight: Float32Array,
  { rows, inputs, outputs }: Sizes,
): Float32Array {
  const out = blank(kernels, rows * outputs);
  kernels.linear({
    out,
    x: floats(kernels, x),
    packed: packed(kernels, weight, inputs, outputs),
    rows,
    inputs,
    outputs,
    accumulate: false,
  });
  return out;
}

const everySize = [
  ...ROWS.flatMap((rows) => WIDTHS.flatMap((inputs) => WIDTHS.map((outputs) => ({ rows, inputs, outputs })))),
  // More than a block of rows, of inputs, of outputs.
  { rows: 61, inputs: 1061, outputs: 40 },
  { rows: 530, inputs: 17, outputs: 530 },
];

export function linearContract(subject: Subject): void {
  describe('linear', () => {
    it('is x W, for W as it is and for W stored transposed', () => {
      for (const sizes of everySize) {
        const { rows, inputs, outputs } = sizes;
        const x = noise(rows * inputs, 'x');
        const weight = noise(inputs * outputs, 'weight');
        const what = `linear ${rows} x ${inputs} x ${outputs}`;
        const out = run(subject(), x, weight, sizes);
        close(out, product(x, weight, sizes), 2e-5, what);

        const other = packed(subject(), transposed(weight, inputs, outputs), inputs, outputs, true);
        const again = blank(subject(), rows * outputs);
        subject().linear({
          out: again,
          x: floats(subject(), x),
          packed: other,
          rows,
          inputs,
          outputs,
          accumulate: false,
        });
        sameBits(body(again), body(out), `${what}, transposed`);
      }
    });

    it('adds the finished sum when it accumulates', () => {
      for (const sizes of everySize.filter(({ inputs }) => inputs % 2 === 1)) {
        const { rows, inputs, outputs } = sizes;
        const x = noise(rows * inputs, 'x');
        const weight = noise(inputs * outputs, 'weight');
        const before = noise(rows * outputs, 'before');
        const sum = body(run(subject(), x, weight, sizes));
        const out = floats(subject(), before);
        const matrix = packed(subject(), weight, inputs, outputs);
        subject().linear({ out, x: floats(subject(), x), packed: matrix, rows, inputs, outputs, accumulate: true });
        const expected = before.map((value, i) => value + get(sum, i));
        sameBits(body(out), expected, `accumulating linear ${rows} x ${inputs} x ${outputs}`);
      }
    });

    it('gives a row the same bits alone, elsewhere, and among rows that are not numbers', () => {
      for (const [inputs, outputs] of [
        [64, 172],
        [97, 31],
        [5, 64],
        [1061, 40],
      ] as const) {
        const rows = 130;
        const x = noise(rows * inputs, 'x');
        const weight = noise(inputs * outputs, 'weight');
        const together = body(run(subject(), x, weight, { rows, inputs, outputs }));

        const reversed = Array.from({ length: rows }, (_, r) => rows - 1 - r);
        const elsewhere = run(subject(), pickRows(x, reversed, inputs), weight, { rows, inputs, outputs });
        sameBits(pickRows(body(elsewhere), reversed, outputs), together, 'rows in reverse');

        for (const row of [0, 1, 7, 15, 16, 64, 129]) {
          const expected = pickRows(together, [row], outputs);
          const alone = run(subject(), pickRows(x, [row], inputs), weight, { rows: 1, inputs, outputs });
          sameBits(body(alone), expected, `row ${row} alone`);

          const spoilt = x.map((value, i) => (Math.floor(i / inputs) === row ? value : Number.NaN));
          const among = body(run(subject(), spoilt, weight, { rows, inputs, outputs }));
          sameBits(pickRows(among, [row], outputs), expected, `row ${row} among not-a-numbers`);
        }
      }
    });

    it('holds for any sizes', () => {
      const size = fc.integer({ min: 1, max: 50 });
      fc.assert(
        fc.property(size, size, size, (rows, inputs, outputs) => {
          const x = noise(rows * inputs, 'any x');
          const weight = noise(inputs * outputs, 'any weight');
          const out = run(subject(), x, weight, { rows, inputs, outputs });
          close(out, product(x, weight, { rows, inputs, outputs }), 2e-5, 'linear');
          const alone = run(subject(), pickRows(x, [rows - 1], inputs), weight, { rows: 1, inputs, outputs });
          sameBits(body(alone), pickRows(body(out), [rows - 1], outputs), 'last row');
        }),
        { seed: 1, numRuns: 60 },
      );
    });

    it('adds x transposed times dOut to the gradient of the weight', () => {
      for (const { rows, inputs, outputs } of everySize) {
        const x = noise(rows * inputs, 'x');
        const dOut = noise(rows * outputs, 'dOut');
        const before = noise(inputs * outputs, 'before');
        const dWeight = floats(subject(), before);
        subject().linearWeightGradient({
          dWeight,
          x: floats(subject(), x),
          dOut: floats(subject(), dOut),
          rows,
          inputs,
          outputs,
        });
        const change = product(transposed(x, rows, inputs), dOut, { rows: inputs, inputs: rows, outputs });
        const expected = change.map((value, i) => value + get(before, i));
        close(dWeight, expected, 2e-5, `weight gradient ${rows} x ${inputs} x ${outputs}`);
      }
    });
  });
}

/** Fills a matrix with random blocks, whose numbers are at most 1/2. Scales and offsets are such as a float16 holds. */
export function fillBlocks(matrix: BlockMatrix<Int32Array>, random: RandomStream): void {
  const half = (most: number) => (Math.round((2 * random.uniform() - 1) * 1024) / 1024) * most;
  const scale = matrix.format === 'Q8_0' ? 2 ** -8 : 2 ** -6;
  const put = blockWriter(matrix);
  for (let output = 0; output < matrix.outputs; output++)
    for (let block = 0; block * BLOCK < matrix.inputs; block++) {
      const bytes = Uint8Array.from({ length: BLOCK }, () => Math.floor(256 * random.uniform()));
      put(output, block, { scale: half(scale), offset: half(2 ** -2), bytes, at: 0 });
    }
}

/** Rows [rows, inputs] as they are after rounding to 8 bits. */
function nearestInInt8(x: Float32Array, inputs: number): Float32Array {
  const nearest = new Float32Array(x.length);
  for (let row = 0; row < x.length; row += inputs)
    for (let first = 0; first < inputs; first += BLOCK) {
      const block = x.subarray(row + first, row + Math.min(first + BLOCK, inputs));
      const largest = Math.max(...block.map(Math.abs));
      const inverse = Math.fround(127 / largest);
      block.forEach((value, i) => {
        nearest[row + first + i] = (largest / 127) * Math.round(Math.fround(value * inverse));
      });
    }
  return nearest;
}

const BLOCK_SIZES = [
  { rows: 1, inputs: 32, outputs: 16 },
  { rows: 3, inputs: 33, outputs: 47 },
  { rows: 7, inputs: 320, outputs: 40 },
  // The most rows of a tile with AVX-512, and one more.
  { rows: 12, inputs: 65, outputs: 100 },
  { rows: 13, inputs: 65, outputs: 100 },
  { rows: 40, inputs: 96, outputs: 1 },
  // More than a block of rows, of inputs, of outputs.
  { rows: 130, inputs: 1061, outputs: 70 },
  { rows: 5, inputs: 40, outputs: 1100 },
];

/**
 * Products with matrices in blocks have the bits of products with the same numbers in float32. Products of rows in int8
 * have the same bits in all implementations.
 */
export function blocksContract(subject: Subject): void {
  describe.each(BLOCK_FORMATS)('matrices in blocks of %s', (format) => {
    const matrixOf = (kernels: HostKernels, inputs: number, outputs: number): BlockMatrix<Int32Array> => {
      const words = kernels.allocateIntegers(blockWords({ format, inputs, outputs }));
      const matrix = { format, words, inputs, outputs };
      fillBlocks(matrix, new RandomStream(`${format} ${inputs} ${outputs}`));
      return matrix;
    };

    it.each(BLOCK_SIZES)('multiply as float32 does, forward and back: $rows x $inputs x $outputs', (sizes) => {
      const kernels = subject();
      for (const transposed of [false, true])
        for (const accumulate of [false, true]) {
          const { rows, inputs, outputs } = sizes;
          const matrix = transposed ? matrixOf(kernels, outputs, inputs) : matrixOf(kernels, inputs, outputs);
          const weight = kernels.allocate(inputs * outputs);
          unpackMatrix(matrix, weight, false);
          const packed = kernels.allocate(kernels.packedSize({ inputs, outputs }));
          kernels.pack({ packed, weight, inputs, outputs, transpose: transposed });
          const x = floats(kernels, noise(rows * inputs, 'x'));
          const [expected, actual] = [0, 1].map(() => floats(kernels, noise(rows * outputs, 'out')));
          if (expected === undefined || actual === undefined) throw new Error('two outputs');
          kernels.linear({ out: expected, x, packed, ...sizes, accumulate });
          const product = transposed ? kernels.blockLinearTransposed : kernels.blockLinear;
          const number = BLOCK_FORMATS.indexOf(format);
          product({ out: actual, x, blocks: matrix.words, format: number, ...sizes, accumulate });
          sameBits(actual, expected, `transposed ${transposed}, accumulate ${accumulate}`);
        }
    });

    it.each(BLOCK_SIZES)('multiply in bfloat16 on the way back: $rows x $inputs x $outputs', (sizes) => {
      const kernels = subject();
      const { rows, inputs, outputs } = sizes;
      const matrix = matrixOf(kernels, outputs, inputs);
      const weight = kernels.allocate(inputs * outputs);
      unpackMatrix(matrix, weight, false);
      const packed = kernels.allocateBfloat16(kernels.bfloat16PackedSize({ inputs, outputs }));
      kernels.bfloat16Pack({ packed, weight, inputs, outputs, transpose: true });
      const x = floats(kernels, noise(rows * inputs, 'x'));
      for (const accumulate of [false, true]) {
        const [expected, actual] = [0, 1].map(() => floats(kernels, noise(rows * outputs, 'out')));
        if (expected === undefined || actual === undefined) throw new Error('two outputs');
        kernels.bfloat16Linear({ out: expected, x, packed, ...sizes, accumulate });
        const blocks = { blocks: matrix.words, format: BLOCK_FORMATS.indexOf(format) };
        kernels.bfloat16BlockLinearTransposed({ out: actual, x, ...blocks, ...sizes, accumulate });
        sameBits(actual, expected, `accumulate ${accumulate}`);
      }
    });

    const rowsInInt8 = (
      kernels: HostKernels,
      matrix: BlockMatrix<Int32Array>,
      x: Float32Array,
      before?: Float32Array,
    ) => {
      const { words, inputs, outputs } = matrix;
      const rows = x.length / inputs;
      const out = before === undefined ? blank(kernels, rows * outputs) : floats(kernels, before);
      const given = { out, x: floats(kernels, x), blocks: words, format: BLOCK_FORMATS.indexOf(format) };
      kernels.int8BlockLinear({ ...given, rows, inputs, outputs, accumulate: before !== undefined });
      return body(out);
    };
    const reference = createReferenceKernels();

    it.each(BLOCK_SIZES)('multiply rows in int8: $rows x $inputs x $outputs', ({ rows, inputs, outputs }) => {
      const kernels = subject();
      const matrix = matrixOf(kernels, inputs, outputs);
      const x = noise(rows * inputs, 'x').map((value, i) => value * 10 ** -(i % 7));
      const actual = rowsInInt8(kernels, matrix, x);
      const weight = kernels.allocate(inputs * outputs);
      unpackMatrix(matrix, weight, false);
      close(actual, product(nearestInInt8(x, inputs), weight, { rows, inputs, outputs }), 2e-5, 'rounded rows');
      sameBits(actual, rowsInInt8(reference, matrix, x), 'the bits of the reference');
      const before = noise(rows * outputs, 'before');
      const sums = before.map((value, i) => value + get(actual, i));
      sameBits(rowsInInt8(kernels, matrix, x, before), sums, 'the finished sum is added');
    });

    it('give a row in int8 the same bits alone, elsewhere, and among rows that are not numbers', () => {
      const kernels = subject();
      const [rows, inputs, outputs] = [130, 97, 47];
      const matrix = matrixOf(kernels, inputs, outputs);
      const x = noise(rows * inputs, 'x');
      const together = rowsInInt8(kernels, matrix, x);
      const reversed = Array.from({ length: rows }, (_, r) => rows - 1 - r);
      const elsewhere = rowsInInt8(kernels, matrix, pickRows(x, reversed, inputs));
      sameBits(pickRows(elsewhere, reversed, outputs), together, 'rows in reverse');
      for (const row of [0, 1, 5, 6, 64, 129]) {
        const expected = pickRows(together, [row], outputs);
        sameBits(rowsInInt8(kernels, matrix, pickRows(x, [row], inputs)), expected, `row ${row} alone`);
        const spoilt = x.map((value, i) => (Math.floor(i / inputs) === row ? value : Number.NaN));
        sameBits(pickRows(rowsInInt8(kernels, matrix, spoilt), [row], outputs), expected, `row ${row} among others`);
      }
    });

    it('round rows in int8 to the even of two neighbours, and have no number for a row with one that is not finite', () => {
      const kernels = subject();
      const [inputs, outputs] = [64, 20];
      const matrix = matrixOf(kernels, inputs, outputs);
      // The first block's scale is 1. All numbers of the second are too small to count.
      const row = Float32Array.from({ length: inputs }, (_, i) => (i === 0 ? -127 : i < BLOCK ? i - 16.5 : 1e-38));
      const even = row.map((value, i) => (i === 0 ? value : i < BLOCK ? 2 * Math.round((i - 16.5) / 2) : 0));
      sameBits(rowsInInt8(kernels, matrix, row), rowsInInt8(kernels, matrix, even), 'ties to even');
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
        const results = rowsInInt8(kernels, matrix, row.with(40, value));
        expect([...results].every(Number.isNaN)).toBe(true);
      }
    });

    it('are looked up as they are unpacked', () => {
      const kernels = subject();
      const [width, vocabSize] = [70, 37];
      const matrix = matrixOf(kernels, width, vocabSize);
      const tokens = kernels.allocateIntegers(4);
      tokens.set([36, 0, 15, 16]);
      const out = kernels.allocate(4 * width);
      const given = { blocks: matrix.words, format: BLOCK_FORMATS.indexOf(format), rows: 4, width, vocabSize };
      kernels.blockEmbed({ out, tokens, ...given });
      tokens.forEach((token, row) => {
        sameBits(out.slice(row * width, (row + 1) * width), unpackOutputs(matrix, token, 1), `token ${token}`);
      });
    });
  });
}
