import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../base/core/errors.js';
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
