import type { NamedTensor } from '../../src/model/formats/tensor.js';
import { safetensorsBytes } from './memory-files.js';

/** Numbers in bfloat16, rounded towards zero. */
const halves = (data: Float32Array) =>
  Uint16Array.from(new Uint32Array(data.buffer, data.byteOffset, data.length), (bits) => bits >>> 16);

/** A checkpoint's file with its tensors in bfloat16, and one with the same numbers in float32. */
export function coarseAndFine(tensors: readonly NamedTensor[]): {
  readonly coarse: Uint8Array;
  readonly fine: Uint8Array;
} {
  const rounded = tensors.map(({ name, shape, data }) => ({ name, shape, halves: halves(data) }));
  let end = 0;
  const header = rounded.map(({ name, shape, halves: own }) => {
    const start = end;
    end += own.byteLength;
    return [name, { dtype: 'BF16', shape, data_offsets: [start, end] }] as const;
  });
  const json = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const length = Buffer.alloc(8);
  length.writeUInt32LE(json.length);
  return {
    coarse: Buffer.concat([length, json, ...rounded.map((each) => new Uint8Array(each.halves.buffer))]),
    fine: safetensorsBytes(
      rounded.map(({ name, shape, halves: own }) => ({
        name,
        shape,
        data: new Float32Array(Uint32Array.from(own, (bits) => bits << 16).buffer),
      })),
      { format: 'pt' },
    ),
  };
}
