/** Attention in blocks of queries and tiles of keys: a row's result depends on neither. */

import type { Heads } from '@drmas/engine/internal/tensor/kernel-arguments';
import { referenceKernels } from '@drmas/engine/internal/tensor/reference/reference-kernels';
import { RandomStream } from '@drmas/engine/math';
import type { DeviceKernels } from '@drmas/webgpu/internal/kernels/device-kernels';
import { describe, expect, it } from 'vitest';
import { sharedKernels } from './opened-device.js';

/** Sequences that begin and end within blocks, some longer than one, and one of a single row. */
const LENGTHS = [37, 1, 50, 9];
const STARTS = [0, 37, 38, 88, 97];
const ROWS = 97;

const widthOf = ({ heads, kvHeads, headDim }: Heads) => (heads + 2 * kvHeads) * headDim;

function noise(length: number, key: string): Float32Array {
  const stream = new RandomStream('attention on a device', key);
  return Float32Array.from({ length }, () => stream.normal());
}

function written(kernels: DeviceKernels, values: Float32Array) {
  const memory = kernels.allocate(values.length);
  kernels.write(memory, values);
  return memory;
}

function integers(kernels: DeviceKernels, values: readonly number[]) {
  const memory = kernels.allocateIntegers(values.length);
  kernels.write(memory, Int32Array.from(values));
  return memory;
}

/** Attention over packed rows, and its gradient. */
async function inBatch(
  kernels: DeviceKernels,
  shape: Heads,
  { qkv, dOut }: Readonly<Record<'qkv' | 'dOut', Float32Array>>,
  starts: readonly number[],
) {
  const rows = starts.at(-1) as number;
  const [x, change] = [written(kernels, qkv), written(kernels, dOut)];
  const [out, sums] = [kernels.allocate(dOut.length), kernels.allocate(rows * shape.heads)];
  const dQkv = kernels.allocate(qkv.length);
  const on = integers(kernels, starts);
  kernels.attention({ out, logSumExp: sums, qkv: x, starts: on, sequences: starts.length - 1, heads: shape });
  kernels.attentionBackward({
    dQkv,
    dOut: change,
    out,
    logSumExp: sums,
    qkv: x,
    starts: on,
    sequences: starts.length - 1,
    heads: shape,
  });
  return kernels.read([out, sums, dQkv]);
}

const gap = (values: Float32Array, expected: Float32Array) =>
  expected.reduce(
    (most, right, i) => Math.max(most, Math.abs((values[i] as number) - right) / (1 + Math.abs(right))),
    0,
  );

describe.each<Heads>([
  { heads: 14, kvHeads: 2, headDim: 64 },
  { heads: 40, kvHeads: 1, headDim: 12 }, // more heads of a key than a block has lines
  { heads: 2, kvHeads: 2, headDim: 128 },
  { heads: 3, kvHeads: 1, headDim: 256 },
  { heads: 4, kvHeads: 2, headDim: 10 }, // vectors of two, five of them
  { heads: 4, kvHeads: 2, headDim: 10, window: 5 },
])('attention of %o', (shape) => {
  const given = {
    qkv: noise(ROWS * widthOf(shape), 'qkv'),
    dOut: noise(ROWS * shape.heads * shape.headDim, 'dOut'),
  };

  // Every width of a head has shaders of its own.
  const tags = shape.headDim === 10 ? [] : ['long'];
  it('has the results of the plain kernels, with the same bits alone and through a cache in pieces', {
    tags,
  }, async () => {
    const kernels = await sharedKernels();
    const { qkv, dOut } = given;
    const expected = [dOut.length, ROWS * shape.heads, qkv.length].map((length) => new Float32Array(length));
    const [out, sums, dQkv] = expected as [Float32Array, Float32Array, Float32Array];
    const starts = Int32Array.from(STARTS);
    referenceKernels.attention({ out, logSumExp: sums, qkv, starts, sequences: LENGTHS.length, heads: shape });
    referenceKernels.attentionBackward({
      dQkv,
      dOut,
      out,
      logSumExp: sums,
      qkv,
      starts,
      sequences: LENGTHS.length,
      heads: shape,
    });
    const all = await inBatch(kernels, shape, given, STARTS);
    all.forEach((each, i) => {
      expect(gap(each, expected[i] as Float32Array)).toBeLessThan(2e-5);
    });

    const widths = [shape.heads * shape.headDim, shape.heads, widthOf(shape)];
    const rowsOf = (values: Float32Array, first: number, end: number, width: number) =>
      values.subarray(first * width, end * width);
    for (const [s, length] of LENGTHS.entries()) {
      const [first, end] = [STARTS[s] as number, STARTS[s + 1] as number];
      const alone = await inBatch(
        kernels,
        shape,
        {
          qkv: rowsOf(qkv, first, end, widthOf(shape)),
          dOut: rowsOf(dOut, first, end, widths[0] as number),
        },
        [0, length],
      );
      alone.forEach((values, i) => {
        expect(values).toEqual(rowsOf(all[i] as Float32Array, first, end, widths[i] as number));
      });
    }

    const capacity = 64;
    const size = LENGTHS.length * kernels.cacheSlotSize({ capacity, heads: shape });
    const [keys, values] = [kernels.allocate(size), kernels.allocate(size)];
    const places = LENGTHS.flatMap((length, slot) => Array.from({ length }, (_, position) => ({ slot, position })));
    const slots = integers(
      kernels,
      places.map(({ slot }) => slot),
    );
    const positions = integers(
      kernels,
      places.map(({ position }) => position),
    );
    const [x, attended] = [written(kernels, qkv), kernels.allocate(dOut.length)];
    // Rows 0 to 4 have a group each; the others, more than 64, do not.
    for (const [first, end] of [
      [0, 5],
      [5, ROWS],
    ] as const)
      kernels.attentionCached({
        out: attended.subarray(first * (widths[0] as number)),
        keys,
        values,
        qkv: x.subarray(first * widthOf(shape)),
        slots: slots.subarray(first),
        positions: positions.subarray(first),
        alike: integers(kernels, new Array<number>(end - first).fill(0)),
        rows: end - first,
        capacity,
        heads: shape,
      });
    expect((await kernels.read([attended]))[0]).toEqual(all[0]);
  });
});

it('rows of no sequence are left alone', async () => {
  const kernels = await sharedKernels();
  const shape = { heads: 2, kvHeads: 1, headDim: 8 };
  const qkv = noise(40 * widthOf(shape), 'qkv');
  const out = written(kernels, new Float32Array(40 * 16).fill(7));
  const starts = integers(kernels, [3, 10, 10, 30]);
  kernels.attention({
    out,
    logSumExp: kernels.allocate(80),
    qkv: written(kernels, qkv),
    starts,
    sequences: 3,
    heads: shape,
  });
  const [values] = await kernels.read([out]);
  const changed = Array.from({ length: 40 }, (_, row) =>
    values.subarray(row * 16, row * 16 + 16).every((v) => v !== 7),
  );
  expect(changed).toEqual(changed.map((_, row) => row >= 3 && row < 30));
});
