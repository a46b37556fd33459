/** A model on disk: a directory in Hugging Face's layout, or a GGUF file. */
import type { Files } from '../../host.js';
import { createTokenizer } from '../tokenizers/create-tokenizer.js';
import { finiteWeights } from './finite-weights.js';
import { isGguf, openGguf } from './gguf/gguf-checkpoint.js';
import { type ModelDirectory, openModelDirectory } from './hugging-face-directory.js';
import { type DescribedModel, readConfig } from './model-config.js';
import { readJson, tokenizerForRows, withTemplate } from './tokenizer-files.js';
import { isThere } from './validated-json.js';

/** Whether a place holds a whole model. @throws CheckpointError when that cannot be determined */
export async function holdsModel(files: Files, place: string): Promise<boolean> {
  return (await isThere(files, `${place}/config.json`)) || ((await isThere(files, place)) && isGguf(files, place));
}

/**
 * Opens a model without reading weights, and checks that the engine can compute it.
 * @param chatTemplate As `readTokenizer` takes it
 * @throws CheckpointError naming file, tensor and expectation; TokenizerError when the tokenizer cannot be used
 */
export async function openStoredModel(files: Files, place: string, chatTemplate?: string): Promise<ModelDirectory> {
  if (!(await isGguf(files, place))) return openModelDirectory(files, place, chatTemplate);
  const { model, tensors, tokenizer: spec } = await openGguf(files, place);
  const { vocabSize } = model.config;
  const whole = chatTemplate === undefined ? createTokenizer(spec) : withTemplate(spec, chatTemplate, place);
  const complaint = `${place}: the tokenizer has ${whole.vocabSize} tokens, but the embedding has ${vocabSize} rows`;
  const tokenizer = tokenizerForRows(whole, vocabSize, complaint);
  return { model, tokenizer, tensors: new Map([...tensors].map(([name, each]) => [name, finiteWeights(each, place)])) };
}

/** Reads a model's description alone. @throws CheckpointError naming the key and the expected value */
export async function describeModel(files: Files, place: string): Promise<DescribedModel> {
  if (await isGguf(files, place)) return (await openGguf(files, place)).model;
  const file = `${place}/config.json`;
  return readConfig(await readJson(files, file), file);
}
