/** The common part of the embedded engine's handles: the engine's thread, and reading and writing a model's state. */

import type { AdapterSettings, DecoderConfig, Precision } from '../contract/architecture.js';
import type { StateOptions } from '../contract/handles.js';
import type { AgentAdapters } from '../contract/weights-spec.js';
import { CheckpointError } from '../errors.js';
import type { Files } from '../host.js';
import type { Tokenizer } from '../nouns.js';
import { saysIdentity, writeIdentity } from './base-identity.js';
import type { GenerationQueue } from './generation-queue.js';
import { openAdapter, openPolicy, openTrunk, writeAdapter, writePolicy, writeTrunk } from './state-files.js';
import type { PolicyState, StoredState } from './stored-state.js';
import type { EngineThread } from './thread/engine-thread.js';
import type { StateOwner } from './thread/incoming-states.js';

export interface EngineServices {
  readonly thread: EngineThread;
  readonly queue: GenerationQueue;
  readonly files: Files;
}

/** A model that adapters adapt, or that samples without an adapter. */
export interface Base {
  /** Its number in the engine. */
  readonly id: number;
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  /** Undefined if the weights were drawn from a seed. */
  readonly directory: string | undefined;
  /** `weightsHash`, computed when it is first asked for. */
  readonly hash: () => Promise<string>;
}

export interface EmbeddedModel {
  readonly id: number;
  readonly name: string;
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  readonly precision: Precision;
  /** Number of trained parameters. */
  readonly parameters: number;
  readonly adapted: { readonly base: Base; readonly settings: AdapterSettings } | undefined;
  readonly agentAdapters?: Pick<AgentAdapters, 'agents' | 'settings'> | undefined;
  /** Warnings for people from the opening of the model. Default: none. */
  readonly warnings?: readonly string[];
}

/**
 * Loads a state from files into the engine, piece by piece. It reads the next piece while the engine copies one.
 * `inBlocks`: matrices come in the blocks of their file.
 */
export async function fillState(
  { thread }: EngineServices,
  owner: StateOwner,
  { tensors, optimizer }: StoredState,
  { inBlocks = false }: { readonly inBlocks?: boolean } = {},
): Promise<void> {
  const buffers = optimizer?.buffers ?? [];
  const state = optimizer && { ...optimizer, buffers: buffers.map(({ name }) => name) };
  await thread.call('beginState', owner, state);
  let complete = false;
  try {
    let last: Promise<void> = Promise.resolve();
    // A base is read whole: an engine that reads files by itself needs no copy of it here.
    const inFiles = owner.kind === 'base' && thread.hardware.readsFiles === true;
    for (const tensor of [...tensors, ...buffers]) {
      if (inFiles && tensor.inFile !== undefined) {
        await thread.call('fillState', owner, { ...tensor.inFile, name: tensor.name });
        continue;
      }
      for await (const piece of (inBlocks ? tensor.blocks : undefined)?.pieces() ?? tensor.pieces()) {
        await last;
        last = thread.callWith([piece.bytes.buffer], 'fillState', owner, { ...piece, name: tensor.name });
        last.catch(() => {}); // `await last` throws the error; it is never reached if reading fails first
      }
    }
    await last;
    complete = true;
  } finally {
    await thread.call('endState', owner, complete);
  }
}

/** Opens a state of this model's shape in a directory. @throws CheckpointError */
export async function openState(
  { files }: EngineServices,
  { name, config, adapted, agentAdapters }: EmbeddedModel,
  directory: string,
  options: StateOptions,
): Promise<StoredState> {
  if (agentAdapters !== undefined) {
    const stored = await openTrunk(files, directory, agentAdapters, options);
    requireEqual(name, directory, config, stored.config);
    for (const adapter of stored.adapters)
      requireEqual(name, adapter.directory, agentAdapters.settings, adapter.settings);
    return stored.state;
  }
  if (adapted === undefined) {
    const stored = await openPolicy(files, directory, options);
    requireEqual(name, directory, config, stored.config);
    return stored.state;
  }
  const { base, settings } = adapted;
  const stored = await openAdapter(files, directory, config, options);
  requireEqual(name, directory, settings, stored.settings);
  await saysIdentity(files, directory, () => base.hash(), base.directory ?? 'the model of this seed');
  return stored.state;
}

export async function writeState(
  { thread, files }: EngineServices,
  { id, config, tokenizer, adapted, agentAdapters }: EmbeddedModel,
  directory: string,
  state: PolicyState,
): Promise<void> {
  if (agentAdapters !== undefined)
    return writeTrunk(
      files,
      directory,
      { config, tokenizer, state },
      agentAdapters,
      await thread.call('trunkHash', id),
    );
  if (adapted === undefined) return writePolicy(files, directory, { config, tokenizer, state });
  const { base, settings } = adapted;
  const model = base.directory ?? {
    config,
    tokenizer,
    state: { weights: await thread.call('exportBase', base.id) },
  };
  await writeAdapter(files, directory, { settings, state }, { config, tokenizer }, model);
  await writeIdentity(files, directory, await base.hash());
}

/** @throws CheckpointError naming the setting that differs between a policy and a checkpoint */
function requireEqual<T extends object>(policy: string, directory: string, expected: T, stored: T): void {
  for (const key of Object.keys({ ...expected, ...stored }) as (keyof T & string)[]) {
    const [a, b] = [expected, stored].map((each) => JSON.stringify(each[key]) ?? 'none');
    if (a !== b) throw new CheckpointError(`${directory}: policy '${policy}' has ${key} ${a}, the checkpoint ${b}`);
  }
}
