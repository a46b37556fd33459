import { inTiles, toBfloat16, widen } from '@drmas/engine/internal/tensor/bfloat16';
import type { WeightArray } from '@drmas/engine/internal/tensor/kernel-arguments';
import type { HostKernels } from '@drmas/engine/kernels';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bfloat16,
  blank,
  body,
  close,
  floats,
  get,
  NAN_BITS,
  noise,
  pickRows,
  ROWS,
  type Subject,
  sameBits,
  tailIsIntact,
  WIDTHS,
} from './support.js';

interface Sizes {
  readonly rows: number;
  readonly inputs: number;
  readonly outputs: number;
}

const rounded = (numbers: Float32Array): Float32Array => {
  const floats = new Float32Array(numbers.length);
  widen(floats, toBfloat16(numbers));
  return floats;
};

function transposed(x: Float32Array, rows: number, columns: number): Float32Array {
  const out = new Float32Array(x.length);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) out[c * rows + r] = x[r * columns + c] as number;
  return out;
}

/** Drawn once for all the kernels of a file. */
const computed = new Map<string, Float32Array>();

/** start plus the products of two lines of numbers in bfloat16, in an order that docs/how-the-engine-works.md has. */
type Order = (start: number, first: Float32Array, second: Float32Array) => number;

const pairByPair: Order = (start, first, second) => {
  let sum = start;
  for (let k = 0; k < first.length; k += 2) {
    if (k + 1 < first.length) sum = Math.fround(sum + (first[k + 1] as number) * (second[k + 1] as number));
    sum = Math.fround(sum + (first[k] as number) * (second[k] as number));
  }
  return sum;
};

const blockByBlock: Order = (start, first, second) => {
  let sum = start;
  for (let block = 0; block < first.length; block += 32) {
    const apart = new Float64Array(2);
    for (let k = block; k < Math.min(block + 32, first.length); k++)
      apart[k % 2] = Math.fround((apart[k % 2] as number) + (first[k] as number) * (second[k] as number));
    sum = Math.fround(sum + Math.fround((apart[0] as number) + (apart[1] as number)));
  }
  return sum;
};

/**
 * start + a bᵀ of lines [rows, steps] and [columns, steps] of numbers in bfloat16, whose products float32 holds
 * exactly, in the order of these kernels. Equal names mean equal arguments.
 */
function dots(
  { bfloat16Products }: HostKernels,
  name: string,
  start: Float32Array,
  a: Float32Array,
  b: Float32Array,
  steps: number,
): Float32Array {
  const order = inTiles(bfloat16Products) ? blockByBlock : pairByPair;
  const key = `${order.name}: ${name}`;
  const before = computed.get(key);
  if (before !== undefined) return before;
  const linesOf = (all: Float32Array) =>
    Array.from({ length: all.length / steps }, (_, at) => all.subarray(at * steps, (at + 1) * steps));
  const [rows, columns] = [linesOf(a), linesOf(b)];
  const all = new Float32Array(start.length);
  for (const [r, row] of rows.entries())
    for (const [c, column] of columns.entries()) {
      const at = r * columns.length + c;
      all[at] = order(start[at] as number, row, column);
    }
  computed.set(key, all);
  return all;
}

function packed(kernels: HostKernels, weight: WeightArray, inputs: number, outputs: number, transpose = false) {
  const size = kernels.bfloat16PackedSize({ inputs, outputs });
  const buffer = bfloat16(kernels, new Uint16Array(size).fill(NAN_BITS));
  const matrix = weight instanceof Float32Array ? floats(kernels, weight) : bfloat16(kernels, weight);
  kernels.bfloat16Pack({ packed: buffer, weight: matrix, inputs, outputs, transpose });
  expect(buffer.subarray(size).every((bits) => bits === NAN_BITS)).toBe(true);
  return buffer;
}

function run(
  kernels: HostKernels,
  x: Float32Array,
  weight: Float32Array,
  { rows, inputs, outputs }: Sizes,
): Float32Array {
  const out = blank(kernels, rows * outputs);
  const matrix = packed(kernels, weight, inputs, outputs);
  kernels.bfloat16Linear({ out, x: floats(kernels, x), packed: matrix, rows, inputs, outputs, accumulate: false });
  expect(tailIsIntact(out)).toBe(true);
  return body(out);
}

const everySize = [
  ...ROWS.flatMap((rows) => WIDTHS.flatMap((inputs) => WIDTHS.map((outputs) => ({ rows, inputs, outputs })))),
  // More than a block of rows, of inputs, of outputs.
  { rows: 300, inputs: 33, outputs: 50 },
  { rows: 37, inputs: 1061, outputs: 20 },
  { rows: 560, inputs: 17, outputs: 530 },
];

export function bfloat16ProductsContract(subject: Subject): void {
  describe('products of operands rounded to bfloat16', () => {
    it('are sums of exact products in the one stated order, whatever way the weight lies and is kept', () => {
      for (const { rows, inputs, outputs } of everySize) {
        const x = noise(rows * inputs, 'x');
        const weight = noise(inputs * outputs, 'weight');
        const what = `${rows} x ${inputs} x ${outputs}`;
        const out = run(subject(), x, weight, { rows, inputs, outputs });
        const lines = transposed(weight, inputs, outputs);
        sameBits(
          out,
          dots(subject(), what, new Float32Array(rows * outputs), rounded(x), rounded(lines), inputs),
          what,
        );
        for (const [kind, matrix] of [
          ['transposed', packed(subject(), lines, inputs, outputs, true)],
          ['kept in bfloat16', packed(subject(), toBfloat16(weight), inputs, outputs)],
          ['transposed in bfloat16', packed(subject(), toBfloat16(lines), inputs, outputs, true)],
        ] as const) {
          const again = blank(subject(), rows * outputs);
          subject().bfloat16Linear({
            out: again,
            x: floats(subject(), x),
            packed: matrix,
            rows,
            inputs,
            outputs,
            accumulate: false,
          });
          sameBits(body(again), out, `${what}, ${kind}`);
        }
      }
    });

    it('are added as finished sums when they accumulate', () => {
      for (const sizes of everySize.filter(({ inputs }) => inputs % 2 === 1)) {
        const { rows, inputs, outputs } = sizes;
        const x = noise(rows * inputs, 'x');
        const weight = noise(inputs * outputs, 'weight');
        const before = noise(rows * outputs, 'before');
        const sum = run(subject(), x, weight, sizes);
        const out = floats(subject(), before);
        const matrix = packed(subject(), weight, inputs, outputs);
        subject().bfloat16Linear({
          out,
          x: floats(subject(), x),
          packed: matrix,
          rows,
          inputs,
          outputs,
          accumulate: true,
        });
        const expected = before.map((value, i) => value + get(sum, i));
        sameBits(body(out), expected, `accumulating ${rows} x ${inputs} x ${outputs}`);
      }
    });

    it('add up to the gradient of a weight, over pairs of rows in order', () => {
      for (const { rows, inputs, outputs } of everySize) {
        const x = noise(rows * inputs, 'x');
        const dOut = noise(rows * outputs, 'dOut');
        const before = noise(inputs * outputs, 'before');
        const dWeight = floats(subject(), before);
        const [a, b] = [floats(subject(), x), floats(subject(), dOut)];
        subject().bfloat16LinearWeightGradient({ dWeight, x: a, dOut: b, rows, inputs, outputs });
        const [left, right] = [transposed(rounded(x), rows, inputs), transposed(rounded(dOut), rows, outputs)];
        const what = `weight gradient ${rows} x ${inputs} x ${outputs}`;
        sameBits(body(dWeight), dots(subject(), what, before, left, right, rows), what);
        expect(tailIsIntact(dWeight)).toBe(true);
      }
    });

    it('give a row the same bits alone, elsewhere, and among rows that are not numbers', () => {
      for (const [inputs, outputs] of [
        [64, 172],
        [97, 31],
        [5, 64],
        [1061, 40],
      ] as const) {
        const rows = 130;
        const x = noise(rows * inputs, 'x');
        const weight = noise(inputs * outputs, 'weight');
        const together = run(subject(), x, weight, { rows, inputs, outputs });
        const reversed = Array.from({ length: rows }, (_, r) => rows - 1 - r);
        const elsewhere = run(subject(), pickRows(x, reversed, inputs), weight, { rows, inputs, outputs });
        sameBits(pickRows(elsewhere, reversed, outputs), together, 'rows in reverse');
        for (const row of [0, 1, 7, 15, 16, 64, 129]) {
          const expected = pickRows(together, [row], outputs);
          const alone = run(subject(), pickRows(x, [row], inputs), weight, { rows: 1, inputs, outputs });
          sameBits(alone, expected, `row ${row} alone`);
          const spoilt = x.map((value, i) => (Math.floor(i / inputs) === row ? value : Number.NaN));
          const among = run(subject(), spoilt, weight, { rows, inputs, outputs });
          sameBits(pickRows(among, [row], outputs), expected, `row ${row} among not-a-numbers`);
        }
      }
    });

    it('hold for any sizes, and are near the products of all bits', () => {
      const size = fc.integer({ min: 1, max: 50 });
      fc.assert(
        fc.property(size, size, size, (rows, inputs, outputs) => {
          const x = noise(rows * inputs, 'any x');
          const weight = noise(inputs * outputs, 'any weight');
          const out = run(subject(), x, weight, { rows, inputs, outputs });
          const exact = blank(subject(), rows * outputs);
          const matrix = floats(subject(), new Float32Array(subject().packedSize({ inputs, outputs })));
          subject().pack({ packed: matrix, weight: floats(subject(), weight), inputs, outputs, transpose: false });
          subject().linear({
            out: exact,
            x: floats(subject(), x),
            packed: matrix,
            rows,
            inputs,
            outputs,
            accumulate: false,
          });
          // Each factor is off by 2^-9 of itself at most; products are at most 1.
          close(out, body(exact), inputs * 2 ** -8, 'bfloat16Linear beside linear');
        }),
        { seed: 1, numRuns: 40 },
      );
    });

    it('round to even, flush subnormal numbers, and keep NaN and infinity', () => {
      const half = 2 ** -9; // between 1 and the next number in bfloat16, 1 + 2^-7, lies 1 + 2^-8
      const cases: [number, number][] = [
        [1 + 2 ** -8, 1],
        [1 + 2 ** -8 + 2 ** -20, 1 + 2 ** -7],
        [1 + 3 * 2 ** -8, 1 + 2 ** -6],
        [-(1 + 2 ** -8 - half * 2 ** -10), -1],
        [2 ** -127, 0],
        [2 ** -126, 2 ** -126],
        [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
        [Number.NaN, Number.NaN],
        [3.4e38, Number.POSITIVE_INFINITY],
      ];
      for (const [number, expected] of cases) {
        const sizes = { rows: 1, inputs: 1, outputs: 1 };
        const one = Float32Array.of(1);
        expect([...run(subject(), Float32Array.of(number), one, sizes)]).toEqual([expected]);
        expect([...run(subject(), one, Float32Array.of(number), sizes)]).toEqual([expected]);
      }
    });

    it('flush subnormal sums too if tiles compute them', ({ skip }) => {
      if (!inTiles(subject().bfloat16Products)) return skip('of sums in pairs only some are flushed');
      const least = 2 ** -126;
      const product = (x: readonly number[], weight: readonly number[]) => {
        const sizes = { rows: 1, inputs: x.length, outputs: 1 };
        return run(subject(), Float32Array.from(x), Float32Array.from(weight), sizes)[0];
      };
      expect(product([least], [0.5])).toBe(0);
      expect(product([least, 0, least], [0.5, 0, 0.5])).toBe(0);
      expect(product([least, 0, 2 * least], [0.5, 0, 1])).toBe(2 * least);
      expect(product([2 * least, 0, least], [1, 0, 0.5])).toBe(2.5 * least);
      expect(product([least, -least], [1.5, 1])).toBe(0);
      const across = new Array(33).fill(0);
      expect(product([1.5 * least, ...across, -least], [1, ...across, 1])).toBe(0);
      // The gradient that is added to is read as 0 as well.
      const dWeight = floats(subject(), [least / 2]);
      const one = floats(subject(), [1]);
      subject().bfloat16LinearWeightGradient({
        dWeight,
        x: one,
        dOut: floats(subject(), [2 * least]),
        rows: 1,
        inputs: 1,
        outputs: 1,
      });
      expect(dWeight[0]).toBe(2 * least);
    });
  });
}
