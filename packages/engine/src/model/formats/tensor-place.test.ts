import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ArgumentError } from '../../base/core/errors.js';
import type { TensorPiece } from './tensor.js';
import { putPiece, type TensorPlace, takeTensor } from './tensor-place.js';

const name = 'w';
const sizes = { rows: fc.integer({ min: 1, max: 70 }), columns: fc.integer({ min: 1, max: 9 }) };

/** Where a [rows, columns] matrix stands as columns `before` and on of a matrix with `after` more columns. */
function among(rows: number, columns: number, before: number, after: number) {
  const stride = before + rows + after;
  const matrix = new Float32Array(columns * stride).fill(-1);
  const place: TensorPlace = { name, shape: [rows, columns], data: matrix.subarray(before), stride };
  return { matrix, stride, place };
}

/** The numbers 1, 2, 3 ... as float32 in pieces of so many rows. */
function pieces(rows: number, columns: number, most: number): TensorPiece[] {
  const all = Float32Array.from({ length: rows * columns }, (_, i) => i + 1);
  const pieces: TensorPiece[] = [];
  for (let first = 0; first < all.length; first += most * columns) {
    const bytes = new Uint8Array(all.slice(first, first + most * columns).buffer);
    pieces.push({ name, dtype: 'F32', first, bytes });
  }
  return pieces;
}

describe('a place', () => {
  it('takes a transposed matrix in pieces, gives it back, and leaves its neighbours alone', () => {
    const neighbours = { before: fc.nat(3), after: fc.nat(3), most: fc.integer({ min: 1, max: 70 }) };
    fc.assert(
      fc.property(fc.record({ ...sizes, ...neighbours }), ({ rows, columns, before, after, most }) => {
        const { matrix, stride, place } = among(rows, columns, before, after);
        for (const piece of pieces(rows, columns, most)) putPiece(place, piece);
        const expected = Float32Array.from({ length: matrix.length }, (_, at) => {
          const [column, row] = [Math.floor(at / stride), (at % stride) - before];
          return row >= 0 && row < rows ? row * columns + column + 1 : -1;
        });
        expect(matrix).toEqual(expected);
        const back = Float32Array.from({ length: rows * columns }, (_, i) => i + 1);
        expect(takeTensor(place)).toEqual({ name, shape: [rows, columns], data: back });
      }),
    );
  });

  it('takes a tensor of its own order in pieces, and gives it as it is', () => {
    const data = new Float32Array(14).fill(-1);
    const place = { name, shape: [7], data: data.subarray(3, 10) };
    for (const piece of pieces(7, 1, 3)) putPiece(place, piece);
    expect([...data]).toEqual([-1, -1, -1, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1]);
    expect(takeTensor(place)).toEqual({ name, shape: [7], data: Float32Array.of(1, 2, 3, 4, 5, 6, 7) });
  });

  it.each(['F32', 'BF16'] as const)('keeps the bits of %s numbers that are none', (dtype) => {
    const signalling = dtype === 'F32' ? [0x01, 0, 0xa0, 0x7f] : [0xa0, 0x7f];
    for (const layout of [{}, { stride: 1 }]) {
      const data = new Float32Array(1);
      putPiece({ name, shape: [1, 1], data, ...layout }, { name, dtype, first: 0, bytes: Uint8Array.from(signalling) });
      expect([...new Uint8Array(data.buffer)].slice(-signalling.length)).toEqual(signalling);
    }
  });

  it('in bfloat16 takes numbers in bfloat16 as they are, gives them widened, and refuses others', () => {
    const stored = Uint16Array.from({ length: 70 * 3 }, (_, i) => 300 * i);
    const matrix = new Uint16Array(3 * 71);
    const place: TensorPlace = { name, shape: [70, 3], data: matrix.subarray(1), stride: 71 };
    for (const first of [0, 35 * 3])
      putPiece(place, {
        name,
        dtype: 'BF16',
        first,
        bytes: new Uint8Array(stored.slice(first, first + 35 * 3).buffer),
      });
    expect(matrix).toEqual(
      Uint16Array.from(matrix, (_, at) =>
        at % 71 === 0 ? 0 : (stored[((at % 71) - 1) * 3 + Math.floor(at / 71)] ?? 0),
      ),
    );
    const widened = new Uint32Array(takeTensor(place).data.buffer);
    expect(widened).toEqual(Uint32Array.from(stored, (bits) => bits * 2 ** 16));
    const flat: TensorPlace = { name, shape: [3], data: new Uint16Array(3) };
    putPiece(flat, { name, dtype: 'BF16', first: 1, bytes: Uint8Array.of(0x80, 0x3f, 0, 0x40) });
    expect(takeTensor(flat).data).toEqual(Float32Array.of(0, 1, 2));
    for (const dtype of ['F32', 'F16'] as const)
      expect(() => putPiece(flat, { name, dtype, first: 0, bytes: new Uint8Array(4) })).toThrow(
        new ArgumentError(`tensor "w": expected numbers in bfloat16, found ${dtype}`),
      );
  });

  it('takes bytes that begin anywhere', () => {
    const bytes = Uint8Array.of(0, 0, 0, 0x80, 0x3f).subarray(1);
    const data = new Float32Array(1);
    putPiece({ name, shape: [1], data }, { name, dtype: 'F32', first: 0, bytes });
    expect(data[0]).toBe(1);
  });
});
