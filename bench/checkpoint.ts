/** Model files for the bench: a checkpoint like those on a hub, and a model in llama.cpp's format. */
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RandomStream } from '../src/base/core/random.js';
import type { Tokenizer } from '../src/base/core/tokenizer.js';
import { nodeFiles } from '../src/base/platform/node-files.js';
import type { DecoderConfig } from '../src/engine/contract/architecture.js';
import { ggufOf } from '../src/engine/model/formats/gguf/gguf-model.js';
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
