/**
 * A policy on disk: a directory in the Hugging Face layout, or in PEFT's layout for an adapter. A second safetensors
 * file in it holds the optimiser's state.
 */
import { z } from 'zod';
import type { AdapterSettings, DecoderConfig } from '../contract/architecture.js';
import type { AgentAdapters } from '../contract/weights-spec.js';
import { CheckpointError } from '../errors.js';
import type { Files } from '../host.js';
import { adapterParameterCount, adapterTensors } from '../model/decoder/weights/adapter-tensors.js';
import { decoderTensors, parameterCount } from '../model/decoder/weights/decoder-tensors.js';
import { agentTensor } from '../model/formats/adapter-layout.js';
import { decoderPlaces } from '../model/formats/decoder-layout.js';
import { WEIGHTS, writeModelDirectory } from '../model/formats/hugging-face-directory.js';
import {
  ADAPTER_CONFIG,
  ADAPTER_WEIGHTS,
  openAdapterWeights,
  readAdapterDescription,
  writeAdapterDirectory,
} from '../model/formats/peft.js';
import { encodeSafetensors, openSafetensors, readTensor, requireTensor } from '../model/formats/safetensors.js';
import { holdsModel, openStoredModel } from '../model/formats/stored-model.js';
import { writeTemplate } from '../model/formats/tokenizer-files.js';
import { isThere } from '../model/formats/validated-json.js';
import { optimizerNamed, optimizerTypes } from '../model/optimizers/index.js';
import type { Tokenizer } from '../nouns.js';
import { writeIdentity } from './base-identity.js';
import type { CriticState, PolicyState, StoredState } from './stored-state.js';

const OPTIMIZER = 'optimizer.safetensors';
const VALUE_HEAD = 'value_head.safetensors';
const HEAD_OPTIMIZER = 'value_head.optimizer.safetensors';
/** Checkpoints of the first versions name no optimiser: theirs was AdamW. */
const optimizerType = z.enum(optimizerTypes).default('adamw');
/** The directory in an adapter's directory for a base that exists nowhere else. */
export const OWN_BASE = 'base';

/** A whole model: with its state in memory, to be written, or in files, to be read. */
export interface StoredPolicy<State = StoredState> {
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  readonly state: State;
}

export async function writePolicy(files: Files, directory: string, policy: StoredPolicy<PolicyState>): Promise<void> {
  const { config, tokenizer, state } = policy;
  const tensors = decoderPlaces(decoderTensors(config, state.weights), config);
  await writeModelDirectory(files, directory, { config, tensors, tokenizer, metadata: weightsMark(state) });
  await writeOptimizer(files, directory, state);
}

/** An adapter, without its base. */
export interface StoredAdapter<State = StoredState> {
  readonly settings: AdapterSettings;
  readonly state: State;
}

/** Writes an adapter. `base` is the directory that the base was read from, or a model that is written too. */
export async function writeAdapter(
  files: Files,
  directory: string,
  { settings, state }: StoredAdapter<PolicyState>,
  { config, tokenizer }: Pick<StoredPolicy, 'config' | 'tokenizer'>,
  base: string | StoredPolicy<PolicyState>,
): Promise<void> {
  const tensors = adapterTensors(config, settings, state.weights);
  const name = typeof base === 'string' ? base : OWN_BASE;
  const metadata = weightsMark(state);
  await writeAdapterDirectory(files, directory, { config, settings, base: name, tensors, metadata });
  await writeTemplate(files, directory, tokenizer);
  await writeOptimizer(files, directory, state);
  if (typeof base === 'string') return;
  await files.makeDirectory(`${directory}/${OWN_BASE}`);
  await writePolicy(files, `${directory}/${OWN_BASE}`, base);
}

/** The key of the weights' hash in the files of weights and optimiser. The checkpoints of runs have none. */
const WEIGHTS_HASH = 'weights_sha256';

const weightsMark = ({ hash }: PolicyState): Record<string, string> =>
  hash === undefined ? {} : { [WEIGHTS_HASH]: hash };

async function writeOptimizer(files: Files, directory: string, state: PolicyState): Promise<void> {
  if (state.optimizer === undefined) return;
  await writeOptimizerFile(files, `${directory}/${OPTIMIZER}`, state.optimizer, weightsMark(state));
}

async function writeOptimizerFile(
  files: Files,
  file: string,
  { type, step, version, buffers }: NonNullable<PolicyState['optimizer']>,
  mark: Readonly<Record<string, string>> = {},
): Promise<void> {
  const flat = Object.entries(buffers).map(([name, data]) => ({ name, shape: [data.length], data }));
  const metadata = { type, step: String(step), version: String(version), ...mark };
  await files.write(file, encodeSafetensors(flat, metadata));
}

/** Opens and checks a whole model without reading weights. @throws CheckpointError naming file, tensor, expectation */
export async function openPolicy(
  files: Files,
  directory: string,
  { optimizer, chatTemplate }: { readonly optimizer: boolean; readonly chatTemplate?: string | undefined },
): Promise<StoredPolicy> {
  if ((await holdsAdapter(files, directory)) && !(await holdsModel(files, directory)))
    throw new CheckpointError(
      `${directory}: holds an adapter, expected a whole model; lora(base, { from: '${directory}' }) begins with an adapter`,
    );
  const { model, tensors, tokenizer } = await openStoredModel(files, directory, chatTemplate);
  const { config } = model;
  const state = { tensors: [...tensors.values()] };
  if (!optimizer) return { config, tokenizer, state };
  const opened = await openOptimizer(files, directory, WEIGHTS, parameterCount(config));
  return { config, tokenizer, state: { ...state, optimizer: opened } };
}

/** Whether a directory is one of PEFT's. */
export function holdsAdapter(files: Files, directory: string): Promise<boolean> {
  return isThere(files, `${directory}/${ADAPTER_CONFIG}`);
}

/** Opens an adapter on a decoder of this config. @throws CheckpointError naming file, tensor or key, and expectation */
export async function openAdapter(
  files: Files,
  directory: string,
  config: DecoderConfig,
  { optimizer }: { readonly optimizer: boolean },
): Promise<StoredAdapter> {
  const { settings } = await readAdapterDescription(files, directory);
  const state = { tensors: [...(await openAdapterWeights(files, directory, config, settings)).values()] };
  if (!optimizer) return { settings, state };
  const parameters = adapterParameterCount(config, settings);
  const opened = await openOptimizer(files, directory, ADAPTER_WEIGHTS, parameters);
  return { settings, state: { ...state, optimizer: opened } };
}

/**
 * The directory or GGUF file of an adapter's base. The adapter's file names it; its name is first looked up beside that
 * file.
 * @throws CheckpointError when the file names no base, or a base that does not exist
 */
export async function locateBase(files: Files, directory: string): Promise<string> {
  const { base } = await readAdapterDescription(files, directory);
  const hint = 'name the directory of the model that it adapts as `base`';
  if (base === undefined) throw new CheckpointError(`${directory}/${ADAPTER_CONFIG} names no base; ${hint}`);
  for (const candidate of [`${directory}/${base}`, base]) if (await holdsModel(files, candidate)) return candidate;
  throw new CheckpointError(`${directory}/${ADAPTER_CONFIG} names the base "${base}", which is not there; ${hint}`);
}

/** Writes a critic's value head beside its trunk, as a linear layer to one number. */
export async function writeValueHead(files: Files, directory: string, head: CriticState['head']): Promise<void> {
  const width = head.weights.length - 1;
  const tensors = [
    { name: 'weight', shape: [1, width], data: head.weights.subarray(0, width) },
    { name: 'bias', shape: [1], data: head.weights.subarray(width) },
  ];
  await files.write(`${directory}/${VALUE_HEAD}`, encodeSafetensors(tensors, {}));
  await writeOptimizerFile(files, `${directory}/${HEAD_OPTIMIZER}`, { ...head.optimizer, version: 0 });
}

/** @throws CheckpointError naming file, tensor and expectation */
export async function readValueHead(files: Files, directory: string, width: number): Promise<CriticState['head']> {
  const file = `${directory}/${VALUE_HEAD}`;
  const { tensors } = await openSafetensors(files, file);
  const weights = new Float32Array(width + 1);
  weights.set(await readTensor(requireTensor(tensors, { name: 'weight', shape: [1, width] }, file)));
  weights.set(await readTensor(requireTensor(tensors, { name: 'bias', shape: [1] }, file)), width);
  const { type, step, buffers } = await openOptimizerFile(files, `${directory}/${HEAD_OPTIMIZER}`, weights.length);
  const read = await Promise.all(buffers.map(async (buffer) => [buffer.name, await readTensor(buffer)] as const));
  return { weights, optimizer: { type, step, buffers: Object.fromEntries(read) } };
}

/**
 * @param weights The file of the weights beside it
 * @throws CheckpointError naming file, tensor, expectation; also if the state belongs to other weights
 */
async function openOptimizer(
  files: Files,
  directory: string,
  weights: string,
  length: number,
): Promise<NonNullable<StoredState['optimizer']>> {
  const file = `${directory}/${OPTIMIZER}`;
  const { weightsHash, ...opened } = await openOptimizerFile(files, file, length);
  if (weightsHash === undefined) return opened;
  const { metadata } = await openSafetensors(files, `${directory}/${weights}`);
  if (metadata[WEIGHTS_HASH] === weightsHash) return opened;
  throw new CheckpointError(
    `${file}: the optimiser's state belongs to other weights than those in ${weights}: the two were not saved together`,
  );
}

async function openOptimizerFile(
  files: Files,
  file: string,
  length: number,
): Promise<NonNullable<StoredState['optimizer']> & { readonly weightsHash: string | undefined }> {
  const { tensors, metadata } = await openSafetensors(files, file);
  const count = (key: 'step' | 'version') => {
    const value = Number(metadata[key]);
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new CheckpointError(`${file}: expected metadata "${key}", a count`);
    }
    return value;
  };
  const type = optimizerType.safeParse(metadata.type);
  if (!type.success) throw new CheckpointError(`${file}: metadata "type" names no optimiser: ${metadata.type}`);
  const step = count('step');
  // Before the first step there are no buffers. Later there are the buffers that the optimiser always uses.
  const { buffers } = optimizerNamed(type.data);
  const names = Object.keys(buffers).filter((name) => tensors.has(name) || (buffers[name] === true && step > 0));
  return {
    type: type.data,
    step,
    version: count('version'),
    buffers: names.map((name) => requireTensor(tensors, { name, shape: [length] }, file)),
    weightsHash: metadata[WEIGHTS_HASH],
  };
}

// A policy with an adapter for each agent. Its directory is the trunk, a whole model in the Hugging Face layout, and
// `agents/<agent>` in it is the agent's adapter in PEFT's layout, whose base is the trunk. One file beside the trunk
// holds the optimiser's state of all of them.

export const AGENTS = 'agents';
/** The trunk's place as an adapter names it: relative to the adapter. */
export const TRUNK = '../..';

const agentDirectory = (directory: string, agent: string): string => `${directory}/${AGENTS}/${agent}`;

/** A trunk with its agents' adapters, without the trunk's tokenizer. */
type Adapted = Pick<AgentAdapters, 'agents' | 'settings'>;

/**
 * Writes a trunk and the adapters into an existing directory.
 * @param policy Its weights are the trunk's, then those of the adapters in the order of the agents
 * @param hash The hash of the trunk's weights
 */
export async function writeTrunk(
  files: Files,
  directory: string,
  policy: StoredPolicy<PolicyState>,
  { agents, settings }: Adapted,
  hash: string,
): Promise<void> {
  const { config, tokenizer, state } = policy;
  const [size, each] = [parameterCount(config), adapterParameterCount(config, settings)];
  const trunk = { weights: state.weights.subarray(0, size) };
  await writePolicy(files, directory, { config, tokenizer, state: trunk });
  for (const [i, agent] of agents.entries()) {
    const place = agentDirectory(directory, agent);
    const weights = state.weights.subarray(size + i * each, size + (i + 1) * each);
    await files.makeDirectory(place);
    await writeAdapter(files, place, { settings, state: { weights } }, policy, TRUNK);
    await writeIdentity(files, place, hash);
  }
  await writeOptimizer(files, directory, state);
}

interface StoredTrunk extends StoredPolicy {
  readonly adapters: readonly (StoredAdapter & { readonly directory: string })[];
}

/** Opens a trunk with the adapters of these agents. @throws CheckpointError naming file, tensor, expectation */
export async function openTrunk(
  files: Files,
  directory: string,
  { agents, settings }: Adapted,
  { optimizer, chatTemplate }: { readonly optimizer: boolean; readonly chatTemplate?: string | undefined },
): Promise<StoredTrunk> {
  const trunk = await openPolicy(files, directory, { optimizer: false, chatTemplate });
  const { config } = trunk;
  const tensors = [...trunk.state.tensors];
  const adapters: StoredTrunk['adapters'][number][] = [];
  for (const agent of agents) {
    const place = agentDirectory(directory, agent);
    const adapter = await openAdapter(files, place, config, { optimizer: false });
    adapters.push({ ...adapter, directory: place });
    for (const tensor of adapter.state.tensors) tensors.push({ ...tensor, name: agentTensor(agent, tensor.name) });
  }
  const parameters = parameterCount(config) + agents.length * adapterParameterCount(config, settings);
  const opened = optimizer ? { optimizer: await openOptimizer(files, directory, WEIGHTS, parameters) } : {};
  return { ...trunk, state: { tensors, ...opened }, adapters };
}
