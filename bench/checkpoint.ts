/** Model files for the bench: a checkpoint like those on a hub, and a model in llama.cpp's format. */
import { createWriteStream } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { RandomStream } from '../src/base/core/random.js';
import type { Tokenizer } from '../src/base/core/tokenizer.js';
import { nodeFiles } from '../src/base/platform/node-files.js';
import type { DecoderConfig } from '../src/engine/contract/architecture.js';
import { encodeGguf, type GgufTensor } from '../src/engine/model/formats/gguf/gguf-file.js';
import { ggufHeader, ggufOf } from '../src/engine/model/formats/gguf/gguf-model.js';
import { ggufName } from '../src/engine/model/formats/gguf/gguf-names.js';
import { openModelDirectory, writeModelDirectory } from '../src/engine/model/formats/hugging-face-directory.js';
import { expectedTensors } from '../src/engine/model/formats/tensor-names.js';
import { bfloat16Header } from '../test/support/coarse-checkpoints.js';

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

/** Q4_1: 32 numbers in 20 bytes, first the scale and the least number in half precision, then 4 bits for each. */
const Q4_1 = { format: 3, numbers: 32, bytes: 20 };
/** A scale of 2^-7 and a least number of -7.5 times that, so a matrix has mean 0 and a standard deviation of .036. */
const HALVES = [0x2000, 0xab80] as const;

/**
 * Writes a GGUF file of random blocks of 4 bits. Its decoder has the Llama architecture, tied embeddings and no biases.
 */
export async function writeRandomBlocks(file: string, config: DecoderConfig, tokenizer: Tokenizer): Promise<void> {
  const { vocabSize, width, layers, heads, kvHeads, headDim, feedForward } = config;
  const layer = (index: number): GgufTensor[] => {
    const name = (rest: string) => `model.layers.${index}.${rest}.weight`;
    return [
      ones(name('input_layernorm'), width),
      matrix(name('self_attn.q_proj'), heads * headDim, width),
      matrix(name('self_attn.k_proj'), kvHeads * headDim, width),
      matrix(name('self_attn.v_proj'), kvHeads * headDim, width),
      matrix(name('self_attn.o_proj'), width, heads * headDim),
      ones(name('post_attention_layernorm'), width),
      matrix(name('mlp.gate_proj'), feedForward, width),
      matrix(name('mlp.up_proj'), feedForward, width),
      matrix(name('mlp.down_proj'), width, feedForward),
    ];
  };
  const tensors = [
    matrix('model.embed_tokens.weight', vocabSize, width),
    ...Array.from({ length: layers }, (_, index) => layer(index)).flat(),
    ones('model.norm.weight', width),
  ];
  const header = ggufHeader({ config, tokenizer, name: 'random' });
  await pipeline(Readable.from(encodeGguf(header, tensors)), createWriteStream(file));
}

const ones = (name: string, length: number): GgufTensor => ({
  name: ggufName(name),
  shape: [length],
  read: async () => new Float32Array(length).fill(1),
});

function matrix(name: string, rows: number, columns: number): GgufTensor {
  const bytes = ((rows * columns) / Q4_1.numbers) * Q4_1.bytes;
  const read = async () => {
    const random = new RandomStream('random blocks', name);
    const words = new Uint32Array(bytes / 4); // of a block: the two halves, then four with 32 numbers
    const [scale, least] = HALVES;
    for (let at = 0; at < words.length; at++) words[at] = at % 5 === 0 ? scale + least * 0x10000 : random.word();
    return new Uint8Array(words.buffer);
  };
  return { name: ggufName(name), shape: [rows, columns], stored: { format: Q4_1.format, bytes }, read };
}
