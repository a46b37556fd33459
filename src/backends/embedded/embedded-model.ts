/** What the handles of the embedded engine share: the thread, and where a model's state lies in files. */
import type { AdapterSettings, DecoderConfig, Precision } from '../../contract/architecture.js';
import type { StateOptions } from '../../contract/handles.js';
import { CheckpointError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import type { Tokenizer } from '../../core/tokenizer.js';
import { saysIdentity, writeIdentity } from './base-identity.js';
import type { GenerationQueue } from './generation-queue.js';
import type { PolicyState } from './policy-state.js';
import { openAdapter, openPolicy, writeAdapter, writePolicy } from './state-files.js';
import type { StoredState } from './stored-state.js';
import type { StateOwner } from './thread/arrivals.js';
import type { EngineThread } from './thread/engine-thread.js';

/** An engine and its surroundings. */
export interface EngineRoom {
  readonly thread: EngineThread;
  readonly queue: GenerationQueue;
  readonly files: Files;
}

/** A model that adapters adapt, or that plays as it is. */
export interface Base {
  /** Its number in the engine. */
  readonly id: number;
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  /** Undefined where its weights came from a seed. */
  readonly directory: string | undefined;
  /** `weightsHash`, computed when it is first asked for. */
  readonly hash: () => Promise<string>;
}

/** A model in the engine. */
export interface EmbeddedModel {
  /** Its number in the engine. */
  readonly id: number;
  readonly name: string;
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  readonly precision: Precision;
  /** Number of trained parameters. */
  readonly parameters: number;
  readonly adapted: { readonly base: Base; readonly settings: AdapterSettings } | undefined;
}

/** Feeds the engine with what files hold: while it puts one piece into its place, the next is read. */
export async function fillState(
  { thread }: EngineRoom,
  owner: StateOwner,
  { tensors, optimizer }: StoredState,
): Promise<void> {
  const buffers = optimizer?.buffers ?? [];
  const state = optimizer && { ...optimizer, buffers: buffers.map(({ name }) => name) };
  await thread.call('beginState', owner, state);
  let complete = false;
  try {
    let last: Promise<void> = Promise.resolve();
    for (const tensor of [...tensors, ...buffers]) {
      for await (const piece of tensor.pieces()) {
        await last;
        last = thread.callWith([piece.bytes.buffer], 'fillState', owner, piece);
        last.catch(() => {}); // whoever awaits it hears of it; that may be nobody, if reading fails meanwhile
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
  { files }: EngineRoom,
  { name, config, adapted }: EmbeddedModel,
  directory: string,
  options: StateOptions,
): Promise<StoredState> {
  if (adapted === undefined) {
    const stored = await openPolicy(files, directory, options);
    requireEqual(name, directory, config, stored.config);
    return stored.state;
  }
  const { base, settings } = adapted;
  const stored = await openAdapter(files, directory, config, options);
  requireEqual(name, directory, settings, stored.settings);
  await saysIdentity(files, directory, await base.hash(), base.directory ?? 'the model of this seed');
  return stored.state;
}

/** Writes a state of this model's shape into a directory. */
export async function writeState(
  { thread, files }: EngineRoom,
  { config, tokenizer, adapted }: EmbeddedModel,
  directory: string,
  state: PolicyState,
): Promise<void> {
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

/** @throws CheckpointError naming what a policy has otherwise than a checkpoint */
function requireEqual<T extends object>(policy: string, directory: string, expected: T, stored: T): void {
  for (const key of Object.keys({ ...expected, ...stored }) as (keyof T & string)[]) {
    const [a, b] = [expected, stored].map((each) => JSON.stringify(each[key]) ?? 'none');
    if (a !== b) throw new CheckpointError(`${directory}: policy '${policy}' has ${key} ${a}, the checkpoint ${b}`);
  }
}
