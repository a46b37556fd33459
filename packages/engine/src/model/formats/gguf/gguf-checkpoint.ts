/** A GGUF file as a checkpoint: its description, its tokenizer and its tensors. */
import type { Files } from '../../../host.js';
import type { HuggingFaceSpec } from '../../tokenizers/tokenizer-spec.js';
import { blockFormats } from '../decoder-layout.js';
import type { DescribedModel } from '../model-config.js';
import { readTensor, type StoredTensor } from '../safetensors.js';
import { ggufDecoder } from './gguf-config.js';
import { MAGIC } from './gguf-file.js';
import { type GgufHeader, readGgufHeader } from './gguf-header.js';
import { ROPE_FACTORS } from './gguf-names.js';
import { llama3Scaling } from './gguf-rope.js';
import { ggufTensors, storedTensor } from './gguf-tensors.js';
import { ggufTokenizer } from './gguf-tokenizer.js';

/** A checked GGUF file. The tensors have Hugging Face's names and layout; their values are read on demand. */
export interface GgufCheckpoint {
  readonly model: DescribedModel;
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly tokenizer: HuggingFaceSpec;
}

/** Whether a model's place is a GGUF file: by its name, or by its first bytes, for files without an extension. */
export async function isGguf(files: Files, path: string): Promise<boolean> {
  const holds = (name: string) => files.exists(`${path}/${name}`);
  if ((await holds('config.json')) || (await holds('adapter_config.json'))) return false;
  if (path.endsWith('.gguf')) return true;
  try {
    return new TextDecoder().decode(await files.readBytes(path, 0, MAGIC.length)) === MAGIC;
  } catch {
    return false; // a directory, or nothing
  }
}

/**
 * Opens a file: reads its header, and checks whether the engine can compute the model. No weights are read.
 * @throws CheckpointError naming file, key or tensor and expectation; TokenizerError when the tokenizer cannot be used
 */
export async function openGguf(files: Files, file: string): Promise<GgufCheckpoint> {
  const header = await readGgufHeader(files, file);
  const entry = header.tensors.get(ROPE_FACTORS);
  const factors = entry && (await readTensor(storedTensor(files, file, entry)));
  const decoder = ggufDecoder(header, file, (config) => factors && llama3Scaling(factors, config, file));
  const tokenizer = ggufTokenizer(header.metadata, file);
  const { architecture, config } = decoder;
  const tensors = ggufTensors(files, file, header, decoder);
  const blocks = blockFormats(config, (name) => tensors.get(name)?.blocks?.format);
  const model = { architecture, config, stopTokens: tokenizer.stopTokens ?? [], dtype: dtypeOf(header), blocks };
  return { model, tensors, tokenizer };
}

/** Reads the tokenizer alone. @throws CheckpointError, TokenizerError as `openGguf` does */
export async function openGgufTokenizer(files: Files, file: string): Promise<HuggingFaceSpec> {
  return ggufTokenizer((await readGgufHeader(files, file)).metadata, file);
}

/** The format that the engine holds the matrices in: bfloat16 if all are stored so. */
function dtypeOf({ tensors }: GgufHeader): string {
  const matrices = [...tensors.values()].filter(({ shape }) => shape.length > 1);
  return matrices.every(({ format }) => format.name === 'BF16') ? 'bfloat16' : 'float32';
}
