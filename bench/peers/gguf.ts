import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeFiles } from '../../src/base/platform/node-files.js';
import { ggufOf } from '../../src/engine/model/formats/gguf/gguf-model.js';
import { openModelDirectory } from '../../src/engine/model/formats/hugging-face-directory.js';

/** Converts a model directory of this package into one file in llama.cpp's format, beside the directory. */
export async function ggufBeside(directory: string): Promise<string> {
  const { model, tokenizer, tensors } = await openModelDirectory(nodeFiles, directory);
  const path = join(directory, 'model.gguf');
  await writeFile(path, ggufOf({ config: model.config, tokenizer, name: 'bench' }, tensors.values()));
  return path;
}
