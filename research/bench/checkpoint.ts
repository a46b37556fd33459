/** Model files for the bench: a checkpoint like those on a hub, and a model in llama.cpp's format. */
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DecoderConfig } from '@drmas/engine/contract';
import { bytesIn, FORMATS, type GgufFormat } from '@drmas/engine/internal/model/formats/gguf/gguf-blocks';
import { encodeGguf, type GgufTensor } from '@drmas/engine/internal/model/formats/gguf/gguf-file';
import { ggufHeader, ggufOf } from '@drmas/engine/internal/model/formats/gguf/gguf-model';
import { ggufName } from '@drmas/engine/internal/model/formats/gguf/gguf-names';
import { openModelDirectory, writeModelDirectory } from '@drmas/engine/internal/model/formats/hugging-face-directory';
import { expectedTensors } from '@drmas/engine/internal/model/formats/tensor-names';
import { RandomStream } from '@drmas/engine/math';
import type { Tokenizer } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { bfloat16Header } from '../../test/support/coarse-checkpoints.js';

/** The count of different random numbers, which repeat: drawing half a billion would take a minute. */
const DRAWN = 2 ** 20 + 3; // no multiple of a row

/** Writes a checkpoint of random numbers in bfloat16 into an existing directory. */
export async function writeCheckpoint(directory: string, config: DecoderConfig, tokenizer: Tokenizer): Promise<void> {
  await writeModelDirectory(nodeFiles, directory, { config, tokenizer, tensors: [] });
  const tensors = expectedTensors(config);
  const random = new RandomStream('bench checkpoint');
  const drawn = Float32Array.from({ length: DRAWN }, () => random.normal());
  const file = await open(join(directory, 'model.safetensors'), 'w');
  try {
    await file.write(bfloat16Header(tensors).header);
    for (const { shape } of tensors) {
      const [rows = 1, inputs] = shape;
      // Norms are 1; matrices preserve the size of their inputs.
      const numbers = inputs === undefined ? new Float32Array(rows).fill(1) : drawn.map((x) => x * inputs ** -0.5);
      const bfloat16 = Uint16Array.from(new Uint32Array(numbers.buffer), (bits) => bits >>> 16);
      for (let left = rows * (inputs ?? 1); left > 0; left -= bfloat16.length)
        await file.write(new Uint8Array(bfloat16.buffer, 0, 2 * Math.min(left, bfloat16.length)));
    }
  } finally {
    await file.close();
  }
}

/** Converts a model directory of this package into one file in llama.cpp's format, beside the directory. */
export async function ggufBeside(directory: string): Promise<string> {
  const { model, tokenizer, tensors } = await openModelDirectory(nodeFiles, directory);
  const path = join(directory, 'model.gguf');
  await writeFile(path, ggufOf({ config: model.config, tokenizer, name: 'bench' }, tensors.values()));
  return path;
}

/** The number of the format Q4_1: a block has a scale and a least number in half precision, then 4 bits a number. */
const Q4_1 = 3;
/** A scale of 2^-7 and a least number of -7.5 times that, so a matrix has mean 0 and a standard deviation of .036. */
const HALVES = { scale: 0x2000, least: 0xab80 };

/** Writes a GGUF file whose matrices are random blocks of 4 bits. Rows must be whole blocks, of 32 numbers. */
export async function writeRandomBlocks(file: string, config: DecoderConfig, tokenizer: Tokenizer): Promise<void> {
  const tensors = expectedTensors(config).map(({ name, shape }): GgufTensor => {
    const [rows = 1, columns] = shape;
    const tensor = { name: ggufName(name), shape };
    if (columns === undefined) return { ...tensor, read: async () => new Float32Array(rows).fill(1) }; // a norm
    const format = FORMATS.get(Q4_1) as GgufFormat;
    const stored = { format: Q4_1, bytes: bytesIn(format, shape) };
    return { ...tensor, stored, read: async () => randomBlocks(name, stored.bytes, format.bytes) };
  });
  const header = ggufHeader({ config, tokenizer, name: 'random' });
  await writeFile(file, encodeGguf(header, tensors));
}

function randomBlocks(name: string, length: number, ofBlock: number): Uint8Array {
  const random = new RandomStream('random blocks', name);
  const words = new Uint32Array(length / 4);
  const halves = HALVES.scale + HALVES.least * 0x10000;
  for (let at = 0; at < words.length; at++) words[at] = at % (ofBlock / 4) === 0 ? halves : random.word();
  return new Uint8Array(words.buffer);
}
