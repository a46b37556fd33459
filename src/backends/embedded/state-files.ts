/** A policy on disk: a Hugging Face directory, and the optimiser's state beside it in a second safetensors file. */
import type { DecoderConfig } from '../../core/backend.js';
import { CheckpointError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import type { Tokenizer } from '../../core/tokenizer.js';
import { decoderTensors, parameterCount } from '../../model/decoder/parameters.js';
import { readModelDirectory, writeModelDirectory } from '../../model/formats/directory.js';
import { fromHuggingFace, toHuggingFace } from '../../model/formats/layout.js';
import {
  decodeSafetensors,
  encodeSafetensors,
  requireTensor,
  safetensorsMetadata,
} from '../../model/formats/safetensors.js';
import type { PolicyState } from './engine.js';

const OPTIMIZER = 'optimizer.safetensors';

export async function writePolicy(
  files: Files,
  directory: string,
  policy: { readonly config: DecoderConfig; readonly tokenizer: Tokenizer; readonly state: PolicyState },
): Promise<void> {
  const { config, tokenizer, state } = policy;
  const tensors = toHuggingFace(decoderTensors(config, state.weights), config);
  await writeModelDirectory(files, directory, { config, tensors, tokenizer });
  if (state.optimizer === undefined) return;
  const { step, version, firstMoment, secondMoment } = state.optimizer;
  const flat = [
    { name: 'first_moment', shape: [firstMoment.length], data: firstMoment },
    { name: 'second_moment', shape: [secondMoment.length], data: secondMoment },
  ];
  await files.write(
    `${directory}/${OPTIMIZER}`,
    encodeSafetensors(flat, { step: String(step), version: String(version) }),
  );
}

export interface StoredPolicy {
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  readonly state: PolicyState;
}

/** @throws CheckpointError naming file, tensor and expectation */
export async function readPolicy(
  files: Files,
  directory: string,
  { optimizer }: { readonly optimizer: boolean },
): Promise<StoredPolicy> {
  const { model, tensors, tokenizer } = await readModelDirectory(files, directory);
  const { config } = model;
  const weights = new Float32Array(parameterCount(config));
  fromHuggingFace(decoderTensors(config, weights), tensors, config, directory);
  if (!optimizer) return { config, tokenizer, state: { weights } };
  return { config, tokenizer, state: { weights, optimizer: await readOptimizer(files, directory, weights.length) } };
}

async function readOptimizer(
  files: Files,
  directory: string,
  length: number,
): Promise<NonNullable<PolicyState['optimizer']>> {
  const file = `${directory}/${OPTIMIZER}`;
  const bytes = await files.readBytes(file).catch((error: unknown) => {
    throw new CheckpointError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  });
  const tensors = decodeSafetensors(bytes, file);
  const metadata = safetensorsMetadata(bytes, file);
  const count = (key: 'step' | 'version') => {
    const value = Number(metadata[key]);
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new CheckpointError(`${file}: expected metadata "${key}", a count`);
    }
    return value;
  };
  const read = (name: string) => Float32Array.from(requireTensor(tensors, { name, shape: [length] }, file).data);
  return {
    step: count('step'),
    version: count('version'),
    firstMoment: read('first_moment'),
    secondMoment: read('second_moment'),
  };
}
