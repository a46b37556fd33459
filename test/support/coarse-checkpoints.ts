import { bytesIn, FORMATS, type GgufFormat } from '@drmas/engine/internal/model/formats/gguf/gguf-blocks';
import { decoderTensors } from '@drmas/engine/internal/model/formats/gguf/gguf-decoder';
import { encodeGguf } from '@drmas/engine/internal/model/formats/gguf/gguf-file';
import { ggufHeader } from '@drmas/engine/internal/model/formats/gguf/gguf-model';
import { openModelDirectory } from '@drmas/engine/internal/model/formats/hugging-face-directory';
import type { NamedTensor, TensorShape } from '@drmas/engine/internal/model/formats/tensor';
import { RandomStream } from '@drmas/engine/math';
import { nodeFiles } from '@drmas/engine/platform';
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

/** Formats of blocks by their numbers in GGUF, for the matrices of a file by a part of their names. */
const FORMAT_NUMBERS = { token_embd: 8, attn_output: 8, attn_: 3, ffn_down: 3, ffn_: 2, output: 2 };

/** A model of a directory as a GGUF file whose matrices are random blocks. Widths must be multiples of 32. */
export async function ggufInBlocks(directory: string): Promise<Uint8Array> {
  const { model, tokenizer, tensors } = await openModelDirectory(nodeFiles, directory);
  const random = new RandomStream('blocks');
  const inBlocks = decoderTensors(model.config, tensors.values()).map((tensor) => {
    const { name, shape } = tensor;
    const number = Object.entries(FORMAT_NUMBERS).find(([part]) => name.includes(part))?.[1];
    if (shape.length < 2 || number === undefined) return tensor;
    const format = FORMATS.get(number) as GgufFormat;
    const bytes = bytesIn(format, shape);
    return { ...tensor, stored: { format: number, bytes }, read: async () => randomBlocks(random, format, bytes) };
  });
  const header = ggufHeader({ config: model.config, tokenizer, name: 'blocks' });
  const parts: Uint8Array[] = [];
  for await (const part of encodeGguf(header, inBlocks)) parts.push(Uint8Array.from(part));
  return Buffer.concat(parts);
}

function randomBlocks(random: RandomStream, format: GgufFormat, bytes: number): Uint8Array {
  const blocks = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at++) blocks[at] = random.integer(0, 255);
  const half = () => random.integer(0x1c00, 0x23ff) + (random.chance(0.5) ? 0x8000 : 0); // 2^-8 to 2^-6
  for (let block = 0; block < bytes; block += format.bytes) {
    blocks.writeUInt16LE(half(), block);
    if (format.name === 'Q4_1') blocks.writeUInt16LE(half(), block + 2);
  }
  return blocks;
}
