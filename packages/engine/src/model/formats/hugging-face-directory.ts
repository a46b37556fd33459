/** A model's directory in Hugging Face's layout: config.json, safetensors in one file or several, the tokenizer. */
import { z } from 'zod';
import type { DecoderConfig } from '../../contract/architecture.js';
import { CheckpointError } from '../../errors.js';
import type { Files } from '../../host.js';
import type { Tokenizer } from '../../nouns.js';
import { finiteWeights } from './finite-weights.js';
import { type DescribedModel, readConfig, writeConfig } from './model-config.js';
import {
  areEqual,
  encodeSafetensors,
  openSafetensors,
  renamed,
  requireTensor,
  type StoredTensor,
} from './safetensors.js';
import { EMBEDDING, expectedTensors, OUTPUT } from './tensor-names.js';
import type { TensorPlace } from './tensor-place.js';
import { formatJson, readJson, readTokenizer, tokenizerForRows, writeTokenizer } from './tokenizer-files.js';
import { isThere, parseWith } from './validated-json.js';

export const CONFIG = 'config.json';
export const WEIGHTS = 'model.safetensors';
export const INDEX = 'model.safetensors.index.json';

/** A checked model directory. The tensors have Hugging Face's names and layout; their values are read on demand. */
export interface ModelDirectory {
  readonly model: DescribedModel;
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly tokenizer: Tokenizer;
}

/**
 * Writes a decoder into an existing directory so that `transformers` and `openModelDirectory` load it.
 * `tensors` have Hugging Face's names and layout (`decoderPlaces`); `metadata` goes into their file.
 */
export async function writeModelDirectory(
  files: Files,
  directory: string,
  content: {
    readonly config: DecoderConfig;
    readonly tensors: readonly TensorPlace[];
    readonly tokenizer: Tokenizer;
    readonly metadata?: Readonly<Record<string, string>>;
  },
): Promise<void> {
  const { config, tensors, tokenizer, metadata } = content;
  await files.write(`${directory}/${CONFIG}`, formatJson(writeConfig(config, tokenizer.stopTokens)));
  await writeTokenizer(files, directory, tokenizer);
  // `transformers` refuses a file that does not name its framework.
  await files.write(`${directory}/${WEIGHTS}`, encodeSafetensors(tensors, { format: 'pt', ...metadata }));
}

/**
 * Opens a model's directory: reads its description and tokenizer, and checks whether the engine can compute the model,
 * the list of shards, and the size and the tensors' shapes of each file. No weights are read.
 * @param chatTemplate As `readTokenizer` takes it
 * @throws CheckpointError naming file, tensor and expectation; TokenizerError when the tokenizer cannot be used.
 */
export async function openModelDirectory(
  files: Files,
  directory: string,
  chatTemplate?: string,
): Promise<ModelDirectory> {
  const configFile = `${directory}/${CONFIG}`;
  const model = readConfig(await readJson(files, configFile), configFile);
  const { vocabSize } = model.config;
  const whole = await readTokenizer(files, directory, chatTemplate);
  const complaint = `${directory}: the tokenizer has ${whole.vocabSize} tokens, but vocab_size in ${CONFIG} is ${vocabSize}`;
  const tokenizer = tokenizerForRows(whole, vocabSize, complaint);
  return { model, tensors: await openWeights(files, directory, model), tokenizer };
}

/** Opens the weight files and returns the tensors in their order within the files. */
async function openWeights(
  files: Files,
  directory: string,
  model: DescribedModel,
): Promise<ReadonlyMap<string, StoredTensor>> {
  const expected = new Map(expectedTensors(model.config).map((tensor) => [tensor.name, tensor]));
  const tensors = new Map<string, StoredTensor>();
  const strays: string[] = [];
  const heads: { readonly path: string; readonly head: StoredTensor }[] = [];
  for (const [path, names] of await locate(files, directory, [...expected.keys()])) {
    const stored = new Map((await openSafetensors(files, path)).tensors);
    const head = expected.has(OUTPUT) ? undefined : stored.get(OUTPUT);
    // Of two tied tensors, safetensors' save_model writes the head alone.
    if (head !== undefined && names.includes(EMBEDDING) && !stored.has(EMBEDDING))
      stored.set(EMBEDDING, renamed(head, EMBEDDING));
    else if (head !== undefined) heads.push({ path, head });
    for (const name of stored.keys()) {
      if (!expected.has(name) && !isLeftOver(name)) {
        throw new CheckpointError(`${path}: tensor "${name}" has no place in this ${model.architecture} model`);
      }
    }
    for (const tensor of names.flatMap((name) => expected.get(name) ?? [])) requireTensor(stored, tensor, path);
    const namesHere = new Set(names);
    for (const [name, tensor] of stored) {
      if (!expected.has(name)) continue;
      if (namesHere.has(name)) tensors.set(name, finiteWeights(tensor, path));
      else strays.push(`${path}: tensor "${name}" is here too, where ${INDEX} does not expect it`);
    }
  }
  if (strays[0] !== undefined) throw new CheckpointError(strays[0]);
  const embedding = tensors.get(EMBEDDING);
  for (const { path, head } of heads)
    if (embedding !== undefined && !(await areEqual(head, embedding)))
      throw new CheckpointError(
        `${path}: tensor "${OUTPUT}" is another than "${EMBEDDING}", but ${CONFIG} ties them: expected tie_word_embeddings to be false`,
      );
  return tensors;
}

/** Whether a tensor is one that older versions wrote, which adds nothing. */
const isLeftOver = (name: string): boolean => name.endsWith('.rotary_emb.inv_freq') || name === OUTPUT;

const indexFile = z.looseObject({ weight_map: z.record(z.string(), z.string()) });

/** The weight files, which all exist, and the tensors to read from each. */
async function locate(
  files: Files,
  directory: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const single = `${directory}/${WEIGHTS}`;
  if (await isThere(files, single)) return new Map([[single, names]]);
  const indexPath = `${directory}/${INDEX}`;
  if (!(await isThere(files, indexPath))) {
    throw new CheckpointError(`${directory}: expected ${WEIGHTS} or ${INDEX}, found neither`);
  }
  const shardOf = new Map(Object.entries(parseWith(indexFile, await readJson(files, indexPath), indexPath).weight_map));
  const head = shardOf.get(OUTPUT);
  if (!names.includes(OUTPUT) && head !== undefined && !shardOf.has(EMBEDDING)) shardOf.set(EMBEDDING, head);
  const shards = new Map<string, string[]>();
  for (const name of head === undefined || names.includes(OUTPUT) ? names : [...names, OUTPUT]) {
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
    if (!(await isThere(files, path))) throw new CheckpointError(`${path}: named in ${INDEX}, but missing`);
  }
  return shards;
}
