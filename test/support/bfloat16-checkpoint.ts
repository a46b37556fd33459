import type { NamedTensor, TensorShape } from '../../src/engine/model/formats/tensor.js';
import { safetensorsBytes } from './memory-files.js';

/** Numbers in bfloat16, rounded towards zero. */
const bfloat16Bits = (data: Float32Array) =>
  Uint16Array.from(new Uint32Array(data.buffer, data.byteOffset, data.length), (bits) => bits >>> 16);

/** The header of a file of tensors in bfloat16, and the number of bytes after it. */
export function bfloat16Header(tensors: readonly TensorShape[]): {
  readonly header: Uint8Array;
  readonly numbers: number;
} {
  let end = 0;
  const entries = tensors.map(({ name, shape }) => {
    const start = end;
    end += 2 * shape.reduce((a, b) => a * b, 1);
    return [name, { dtype: 'BF16', shape, data_offsets: [start, end] }] as const;
  });
  const json = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeUInt32LE(json.length);
  return { header: Buffer.concat([length, json]), numbers: end };
}

/** A checkpoint's file with its tensors in bfloat16, and one with the same numbers in float32. */
export function coarseAndFine(tensors: readonly NamedTensor[]): {
  readonly coarse: Uint8Array;
  readonly fine: Uint8Array;
} {
  const rounded = tensors.map(({ name, shape, data }) => ({ name, shape, bits: bfloat16Bits(data) }));
  return {
    coarse: Buffer.concat([bfloat16Header(tensors).header, ...rounded.map((each) => new Uint8Array(each.bits.buffer))]),
    fine: safetensorsBytes(
      rounded.map(({ name, shape, bits }) => ({
        name,
        shape,
        data: new Float32Array(Uint32Array.from(bits, (bits) => bits << 16).buffer),
      })),
      { format: 'pt' },
    ),
  };
}
