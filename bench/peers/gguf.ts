import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ggufOf } from '../../src/model/formats/gguf/gguf-model.js';
import { openModelDirectory } from '../../src/model/formats/hugging-face-directory.js';
import { nodeFiles } from '../../src/platform/node-files.js';

/** Writes a model directory of this package as one file of llama.cpp's format, beside it. */
export async function ggufBeside(directory: string): Promise<string> {
  const { model, tokenizer, tensors } = await openModelDirectory(nodeFiles, directory);
  const path = join(directory, 'model.gguf');
  await writeFile(path, ggufOf({ config: model.config, tokenizer, name: 'bench' }, tensors.values()));
  return path;
}
