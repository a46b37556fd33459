/** A model's directory as Hugging Face lays it out: config.json, safetensors in one file or several, the tokenizer. */
import { z } from 'zod';
import type { DecoderConfig } from '../../core/backend.js';
import { CheckpointError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import type { Tokenizer } from '../../core/tokenizer.js';
import { type ModelDescription, readConfig, writeConfig } from './config.js';
import { expectedTensors, OUTPUT } from './names.js';
import {
  decodeSafetensors,
  encodeSafetensors,
  type NamedTensor,
  requireTensor,
  type StoredTensor,
} from './safetensors.js';
import { readHeader } from './safetensors-header.js';
import { parseWith } from './schema.js';
import { formatJson, readJson, readOrRefuse, readTokenizer, writeTokenizer } from './tokenizer-files.js';

const CONFIG = 'config.json';
const WEIGHTS = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';

/** A model as read from its directory; the tensors have Hugging Face's names and layout. */
export interface ModelDirectory {
  readonly model: ModelDescription;
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly tokenizer: Tokenizer;
}

/**
 * Writes a decoder into an existing directory so that `transformers` and `readModelDirectory` load it.
 * `tensors` have Hugging Face's names and layout (`toHuggingFace`).
 */
export async function writeModelDirectory(
  files: Files,
  directory: string,
  content: {
    readonly config: DecoderConfig;
    readonly tensors: readonly NamedTensor[];
    readonly tokenizer: Tokenizer;
  },
): Promise<void> {
  const { config, tensors, tokenizer } = content;
  await files.write(`${directory}/${CONFIG}`, formatJson(writeConfig(config, tokenizer.stopTokens)));
  await writeTokenizer(files, directory, tokenizer);
  // `transformers` refuses a file that does not name its framework.
  await files.write(`${directory}/${WEIGHTS}`, encodeSafetensors(tensors, { format: 'pt' }));
}

/**
 * Reads a model's directory. Whether the engine can compute it, the tokenizer, the list of shards and each file's shapes are
 * checked before the file's weights are converted.
 * @throws CheckpointError naming file, tensor and expectation; TokenizerError when the tokenizer cannot be used.
 */
export async function readModelDirectory(files: Files, directory: string): Promise<ModelDirectory> {
  const configFile = `${directory}/${CONFIG}`;
  const model = readConfig(await readJson(files, configFile), configFile);
  const tokenizer = await readTokenizer(files, directory);
  if (tokenizer.vocabSize > model.config.vocabSize) {
    throw new CheckpointError(
      `${directory}: the tokenizer has ${tokenizer.vocabSize} tokens, but vocab_size in ${CONFIG} is ${model.config.vocabSize}`,
    );
  }
  return { model, tensors: await readWeights(files, directory, model), tokenizer };
}

async function readWeights(
  files: Files,
  directory: string,
  model: ModelDescription,
): Promise<ReadonlyMap<string, StoredTensor>> {
  const expected = new Map(expectedTensors(model.config).map((tensor) => [tensor.name, tensor]));
  const tensors = new Map<string, StoredTensor>();
  for (const [path, names] of await locate(files, directory, [...expected.keys()])) {
    const bytes = await readOrRefuse(path, () => files.readBytes(path));
    const entries = new Map(readHeader(bytes, path).tensors.map((entry) => [entry.name, entry]));
    for (const name of entries.keys()) {
      if (!expected.has(name) && !isLeftOver(name, model)) {
        throw new CheckpointError(`${path}: tensor "${name}" has no place in this ${model.architecture} model`);
      }
    }
    const wanted = names.flatMap((name) => expected.get(name) ?? []);
    for (const tensor of wanted) requireTensor(entries, tensor, path);
    const stored = decodeSafetensors(bytes, path);
    for (const tensor of wanted) tensors.set(tensor.name, requireTensor(stored, tensor, path));
  }
  return tensors;
}

/** Tensors that older versions wrote and everybody ignores. */
function isLeftOver(name: string, model: ModelDescription): boolean {
  return name.endsWith('.rotary_emb.inv_freq') || (name === OUTPUT && !model.config.untiedOutput);
}

const indexFile = z.looseObject({ weight_map: z.record(z.string(), z.string()) });

/** The weight files and the tensors to read from each. Every file is known to exist. */
async function locate(
  files: Files,
  directory: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const single = `${directory}/${WEIGHTS}`;
  if (await files.exists(single)) return new Map([[single, names]]);
  const indexPath = `${directory}/${INDEX}`;
  if (!(await files.exists(indexPath))) {
    throw new CheckpointError(`${directory}: expected ${WEIGHTS} or ${INDEX}, found neither`);
  }
  const shardOf = new Map(Object.entries(parseWith(indexFile, await readJson(files, indexPath), indexPath).weight_map));
  const shards = new Map<string, string[]>();
  for (const name of names) {
    const shard = shardOf.get(name);
    if (shard === undefined) throw new CheckpointError(`${indexPath}: tensor "${name}" is missing from weight_map`);
    if (!/^[\w.-]+\.safetensors$/.test(shard)) {
      throw new CheckpointError(
        `${indexPath}: tensor "${name}": expected the name of a safetensors file, found "${shard}"`,
      );
    }
    const path = `${directory}/${shard}`;
    shards.set(path, [...(shards.get(path) ?? []), name]);
  }
  for (const path of shards.keys()) {
    if (!(await files.exists(path))) throw new CheckpointError(`${path}: named in ${INDEX}, but missing`);
  }
  return shards;
}
