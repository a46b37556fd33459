import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../base/core/errors.js';
import { finiteWeights } from './finite-weights.js';
import type { StoredTensor } from './safetensors.js';

type Numbers = Uint16Array | Uint32Array;

/** Rows of three numbers, a piece for each two rows. */
function tensor(dtype: StoredTensor['dtype'], bits: Numbers, shape = [bits.length / 3, 3]): StoredTensor {
  const size = bits.BYTES_PER_ELEMENT;
  return {
    name: 'w',
    dtype,
    shape,
    async *pieces() {
      for (let first = 0; first < bits.length; first += 6) {
        const { buffer, byteOffset, length } = bits.slice(first, first + 6);
        yield { name: 'w', dtype, first, bytes: new Uint8Array(buffer, byteOffset, length * size) };
      }
    },
  };
}

async function read(stored: StoredTensor): Promise<number> {
  let numbers = 0;
  for await (const { bytes } of finiteWeights(stored, 'file').pieces()) numbers += bytes.length;
  return numbers;
}

const kinds = [
  {
    dtype: 'F32',
    create: (n: number) => new Uint32Array(n),
    largest: 0x7f7fffff,
    infinite: 0xff800000,
    nan: 0x7f800001,
  },
  { dtype: 'BF16', create: (n: number) => new Uint16Array(n), largest: 0xff7f, infinite: 0x7f80, nan: 0xffc0 },
  { dtype: 'F16', create: (n: number) => new Uint16Array(n), largest: 0x7bff, infinite: 0xfc00, nan: 0x7e01 },
] as const;

it.each(['scale', 'offset'])(
  'weights in blocks are refused with the place of a block whose %s is not finite',
  async (part) => {
    const bytes = new Uint8Array(4 * 20); // two rows of two blocks
    bytes.set([0x00, 0x7c], 3 * 20 + (part === 'scale' ? 0 : 2)); // infinity in float16
    const format = 'Q4_1' as const;
    const blocks = {
      format,
      async *pieces() {
        yield { name: 'w', format, first: 5, bytes };
      },
    };
    const checked = finiteWeights({ ...tensor('F32', new Uint32Array(0), [7, 64]), blocks }, 'file').blocks;
    const reading = (async () => {
      for await (const _ of checked?.pieces() ?? []);
    })();
    await expect(reading).rejects.toThrow('file: tensor "w": expected finite numbers, found another at [6, 32]');
  },
);

describe.each(kinds)('weights in $dtype', ({ dtype, create, largest, infinite, nan }) => {
  it('are passed on where all are finite, the largest too', async () => {
    const bits = create(15).fill(largest);
    expect(await read(tensor(dtype, bits))).toBe(15 * bits.BYTES_PER_ELEMENT);
  });

  it.each([infinite, nan])('are refused with the place of the first that is not: %i', async (wrong) => {
    const bits = create(15);
    bits[10] = wrong;
    bits[14] = wrong;
    const expectation = 'file: tensor "w": expected finite numbers, found another at [3, 1]';
    await expect(read(tensor(dtype, bits))).rejects.toThrow(new CheckpointError(expectation));
    await expect(read(tensor(dtype, bits, [15]))).rejects.toThrow('at [10]');
  });
});
