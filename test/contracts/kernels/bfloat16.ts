import type { HostKernels } from '@drmas/engine/kernels';
import { describe, expect, it } from 'vitest';
import {
  bfloat16,
  blank,
  body,
  floats,
  get,
  integers,
  NAN_BITS,
  noise,
  pickRows,
  ROWS,
  randomIntegers,
  type Subject,
  sameBits,
  tailIsIntact,
  WIDTHS,
} from './support.js';

/** Numbers in bfloat16, uniform in [-1, 1) and rounded towards zero. */
const coarseNoise = (length: number, key: string): Uint16Array =>
  Uint16Array.from(new Uint32Array(noise(length, key).buffer), (bits) => bits >>> 16);

const widened = (values: Uint16Array): Float32Array =>
  new Float32Array(Uint32Array.from(values, (bits) => bits * 2 ** 16).buffer);

function packed(
  kernels: HostKernels,
  weight: Float32Array | Uint16Array,
  from: number,
  to: number,
  transpose: boolean,
) {
  const size = kernels.packedSize({ inputs: from, outputs: to });
  if (weight instanceof Float32Array) {
    const buffer = floats(kernels, new Float32Array(size));
    kernels.pack({ packed: buffer, weight: floats(kernels, weight), inputs: from, outputs: to, transpose });
    return buffer;
  }
  const buffer = bfloat16(kernels, new Uint16Array(size).fill(NAN_BITS));
  kernels.pack({ packed: buffer, weight: bfloat16(kernels, weight), inputs: from, outputs: to, transpose });
  expect(buffer.subarray(size).every((bits) => bits === NAN_BITS)).toBe(true);
  return buffer;
}

export function bfloat16Contract(subject: Subject, { subnormals }: { readonly subnormals: boolean }): void {
  describe('weights in bfloat16', () => {
    it('give the very bits that linear gives with the same numbers in float32', () => {
      for (const rows of ROWS) {
        for (const [inputs, outputs] of WIDTHS.flatMap((from) => WIDTHS.map((to) => [from, to] as const))) {
          const x = floats(subject(), noise(rows * inputs, 'x'));
          const before = noise(rows * outputs, 'before');
          const weight = coarseNoise(inputs * outputs, 'weight');
          for (const transpose of [false, true]) {
            const coarse = packed(subject(), weight, inputs, outputs, transpose);
            const fine = packed(subject(), widened(weight), inputs, outputs, transpose);
            for (const accumulate of [false, true]) {
              const [out, expected] = [floats(subject(), before), floats(subject(), before)];
              subject().linear({ out, x, packed: coarse, rows, inputs, outputs, accumulate });
              subject().linear({ out: expected, x, packed: fine, rows, inputs, outputs, accumulate });
              sameBits(body(out), body(expected), `${rows} x ${inputs} x ${outputs}, ${transpose}, ${accumulate}`);
              expect(tailIsIntact(out)).toBe(true);
            }
          }
        }
      }
    });

    it('give a row the same bits alone and among rows that are not numbers', () => {
      const [rows, inputs, outputs] = [130, 97, 172];
      const x = noise(rows * inputs, 'x');
      const weight = packed(subject(), coarseNoise(inputs * outputs, 'weight'), inputs, outputs, false);
      const run = (from: Float32Array) => {
        const out = blank(subject(), (from.length / inputs) * outputs);
        subject().linear({
          out,
          x: floats(subject(), from),
          packed: weight,
          rows: from.length / inputs,
          inputs,
          outputs,
          accumulate: false,
        });
        return body(out);
      };
      const together = run(x);
      for (const row of [0, 1, 11, 12, 64, 129]) {
        const expected = pickRows(together, [row], outputs);
        sameBits(run(pickRows(x, [row], inputs)), expected, `row ${row} alone`);
        const spoilt = x.map((value, i) => (Math.floor(i / inputs) === row ? value : Number.NaN));
        sameBits(pickRows(run(spoilt), [row], outputs), expected, `row ${row} among not-a-numbers`);
      }
    });

    it.runIf(subnormals)('are any number that there is: linear sees subnormals, infinities and not-a-numbers', () => {
      const weight = Uint16Array.from([
        0,
        0x8000,
        1,
        0x8001,
        0x7f,
        0x80,
        0x7f7f,
        0xff7f,
        0x7f80,
        0xff80,
        NAN_BITS,
        0xffff,
      ]);
      const out = blank(subject(), weight.length);
      const matrix = packed(subject(), weight, 1, weight.length, false);
      subject().linear({
        out,
        x: floats(subject(), [1]),
        packed: matrix,
        rows: 1,
        inputs: 1,
        outputs: weight.length,
        accumulate: false,
      });
      const sum = (value: number) => 0 + value; // begins at 0, so that -0 is 0
      expect(Array.from(body(out))).toEqual(Array.from(widened(weight), sum));
    });

    it('embed as every one of the 65,536 numbers that there are, bit for bit', () => {
      const table = Uint16Array.from({ length: 65_536 }, (_, bits) => bits);
      const tokens = integers(
        subject(),
        Int32Array.from({ length: 256 }, (_, row) => 255 - row),
      );
      const out = blank(subject(), table.length);
      subject().embed({ out, table: bfloat16(subject(), table), tokens, rows: 256, width: 256 });
      const bits = new Uint32Array(body(out).buffer);
      for (let i = 0; i < bits.length; i++) {
        const number = (255 - Math.floor(i / 256)) * 256 + (i % 256);
        if (bits[i] !== number * 2 ** 16) throw new Error(`${number.toString(16)} became ${get(bits, i).toString(16)}`);
      }
    });

    it('embed in rows of any width', () => {
      for (const width of WIDTHS) {
        for (const rows of ROWS) {
          const table = coarseNoise(11 * width, 'table');
          const tokens = randomIntegers(rows, 11, 'tokens');
          const out = blank(subject(), rows * width);
          subject().embed({ out, table: bfloat16(subject(), table), tokens: integers(subject(), tokens), rows, width });
          sameBits(body(out), pickRows(widened(table), Array.from(tokens), width), `width ${width}`);
          expect(tailIsIntact(out)).toBe(true);
        }
      }
    });

    it('are packed to the same kind only', () => {
      const size = subject().packedSize({ inputs: 3, outputs: 5 });
      const [fine, coarse] = [subject().allocate(size), subject().allocateBfloat16(size)];
      const [weight, coarseWeight] = [subject().allocate(15), subject().allocateBfloat16(15)];
      expect(() => subject().pack({ packed: coarse, weight, inputs: 3, outputs: 5, transpose: false })).toThrow(
        RangeError,
      );
      expect(() =>
        subject().pack({ packed: fine, weight: coarseWeight, inputs: 3, outputs: 5, transpose: false }),
      ).toThrow(RangeError);
      expect(() =>
        subject().pack({ packed: coarse, weight: coarseWeight, inputs: 3, outputs: 5, transpose: false }),
      ).not.toThrow();
    });
  });
}
