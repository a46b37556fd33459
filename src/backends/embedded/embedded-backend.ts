import type { AdapterSettings, DecoderConfig } from '../../contract/architecture.js';
import type { CriticBackend, ForwardBackwardResult, TrainBackend } from '../../contract/backend.js';
import type { Capabilities } from '../../contract/capabilities.js';
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer.js';
import type { GenerateRequest, Generation, SampleBackend } from '../../contract/sampling.js';
import type { BaseSpec, PolicyInfo, PolicySpec } from '../../contract/weights.js';
import { BackendError, CheckpointError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import type { TrainingSample } from '../../core/sample.js';
import type { Tokenizer } from '../../core/tokenizer.js';
import { lossTypes } from '../../loss/loss-spec.js';
import type { ForwardBackwardOptions } from '../../loss/objective/objective-options.js';
import type { SamplerResult } from '../../model/decoder/sampling/decoder-sampler.js';
import type { MatrixKind } from '../../model/decoder/weights/packed-decoder.js';
import { saysIdentity, writeIdentity } from './base-identity.js';
import { EmbeddedCritics } from './embedded-critics.js';
import type { PolicyState } from './policy-state.js';
import {
  openAdapter,
  openPolicy,
  type StoredAdapter,
  type StoredPolicy,
  writeAdapter,
  writePolicy,
} from './state-files.js';
import type { StoredState } from './stored-state.js';
import type { Owner } from './thread/arrivals.js';
import type { PolicyShape, RandomStart } from './thread/engine.js';
import { type EngineHardware, EngineThread } from './thread/engine-thread.js';
import { packSamples, transferables } from './thread/sample-batch.js';

export interface EmbeddedOptions {
  /** Threads of the kernels; at least 1. */
  readonly threads: number;
  readonly files: Files;
  /** Keep only the layers' inputs for the backward pass. Default false. */
  readonly recompute?: boolean | undefined;
  /** Told what takes long at the start, such as compiling the kernels. */
  readonly onProgress?: (message: string) => void;
}

/** A model that adapters adapt. */
interface Base {
  /** In the engine. */
  readonly name: string;
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  /** Undefined where its weights came from a seed. */
  readonly directory: string | undefined;
  /** `weightsHash`, computed when it is first asked for. */
  readonly hash: () => Promise<string>;
}

interface Known {
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  readonly adapted: { readonly base: Base; readonly settings: AdapterSettings } | 'frozen' | undefined;
}

/** What to write: the trained weights, or a whole model into which an adapter is folded. */
export type SaveOptions =
  | { readonly optimizer: boolean; readonly merge?: false }
  | { readonly optimizer: false; readonly merge: boolean };

interface Waiting {
  readonly resolve: (generation: Generation) => void;
  readonly reject: (error: unknown) => void;
  readonly forget: () => void;
}

export const EMBEDDED_CAPABILITIES: Capabilities = {
  losses: lossTypes,
  optimizers: ['adamw', 'sgd'],
  entropyBonus: true,
  critic: true,
  references: true,
  fullParameters: true,
  randomModels: true,
  anyTemperature: true,
  clipsGradients: true,
  skipsUpdates: true,
  savedAdapters: true,
  localWeights: true,
};

/** With what only this engine knows of a policy. */
export interface EmbeddedPolicyInfo extends PolicyInfo {
  readonly parameters: number;
  readonly config: DecoderConfig;
}

/** The engine of this package: trains and samples in a worker thread of this process. */
export class EmbeddedBackend implements TrainBackend, SampleBackend {
  readonly capabilities = EMBEDDED_CAPABILITIES;
  readonly critics: CriticBackend;
  readonly #thread: EngineThread;
  readonly #files: Files;
  readonly #policies = new Map<string, Known>();
  readonly #bases = new Map<string, Promise<Base>>();
  #nextBase = 0;
  readonly #waiting = new Map<number, Waiting>();
  /** Requests and cancellations of this event-loop turn, sent together. */
  #requests: { id: number; request: GenerateRequest }[] = [];
  #cancelled: number[] = [];
  #nextId = 0;

  private constructor(thread: EngineThread, files: Files) {
    this.#thread = thread;
    this.#files = files;
    this.critics = new EmbeddedCritics(thread, files, {
      width: (policy) => this.#known(policy).config.width,
      write: (...args) => this.#write(...args),
      read: async (policy, directory, critic) => {
        const state = await this.#open(policy, directory, { optimizer: true });
        await this.#fill({ kind: 'critic', name: critic }, state);
      },
    });
    thread.onMessage = (message) => {
      if (message.type === 'generated') for (const result of message.results) this.#deliver(result);
      else this.#take(message.id)?.reject(new BackendError(message.error.message));
    };
    thread.onDeath = (error) => {
      for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(error);
    };
  }

  static async start({ threads, files, recompute, onProgress }: EmbeddedOptions): Promise<EmbeddedBackend> {
    return new EmbeddedBackend(await EngineThread.start({ threads, recompute }, onProgress), files);
  }

  get hardware(): EngineHardware {
    return this.#thread.hardware;
  }

  /** @throws CheckpointError when a directory cannot be read or holds what the engine cannot compute */
  async createPolicy(name: string, spec: PolicySpec): Promise<EmbeddedPolicyInfo> {
    if (spec.type === 'adapter') {
      const base = await this.#base(spec.base);
      return this.#adapt(name, base, spec.adapter, { seed: spec.seed });
    }
    if (spec.type === 'frozen') return this.#freeze(name, await this.#base(spec.base));
    if (spec.type === 'saved-adapter') return this.#createSaved(name, spec.directory, await this.#base(spec.base));
    if (spec.type === 'directory') {
      const stored = await openPolicy(this.#files, spec.directory, { optimizer: false });
      return this.#create(name, stored, stored.state);
    }
    return this.#create(name, spec, { seed: spec.seed, embeddingDeviation: spec.embeddingDeviation });
  }

  async #createSaved(name: string, directory: string, base: Base): Promise<EmbeddedPolicyInfo> {
    const { settings, state } = await openAdapter(this.#files, directory, base.config, { optimizer: false });
    const on = base.directory ?? 'a model from a seed';
    const known = await saysIdentity(this.#files, directory, await base.hash(), on);
    const info = await this.#adapt(name, base, settings, state);
    if (known) return info;
    return { ...info, warnings: [`${directory} does not say which weights it was trained on; it is put on ${on}`] };
  }

  /** What `openPolicy` opened from a directory as it is: nothing trains it. */
  async adoptFrozen(
    name: string,
    { directory, ...stored }: StoredPolicy & { readonly directory: string },
  ): Promise<EmbeddedPolicyInfo> {
    return this.#freeze(name, await this.#base({ type: 'directory', directory }, stored));
  }

  /** An adapter from what `openAdapter` opened, on what `openPolicy` opened from a directory. */
  async adoptAdapter(
    name: string,
    { settings, state }: StoredAdapter,
    { directory, ...stored }: StoredPolicy & { readonly directory: string },
  ): Promise<EmbeddedPolicyInfo> {
    const base = await this.#base({ type: 'directory', directory }, stored);
    return this.#adapt(name, base, settings, state);
  }

  async #create(
    name: string,
    { config, tokenizer }: Omit<StoredPolicy, 'state'>,
    first: RandomStart | StoredState,
  ): Promise<EmbeddedPolicyInfo> {
    const parameters = await this.#createIn(name, config, first);
    this.#policies.set(name, { config, tokenizer, adapted: undefined });
    return { parameters, context: config.context, config, tokenizer };
  }

  async #adapt(
    name: string,
    base: Base,
    settings: AdapterSettings,
    first: RandomStart | StoredState,
  ): Promise<EmbeddedPolicyInfo> {
    const { config, tokenizer } = base;
    const parameters = await this.#createIn(name, { base: base.name, adapter: settings }, first);
    this.#policies.set(name, { config, tokenizer, adapted: { base, settings } });
    return { parameters, context: config.context, config, tokenizer };
  }

  async #freeze(name: string, { name: base, config, tokenizer }: Base): Promise<EmbeddedPolicyInfo> {
    const parameters = await this.#thread.call('createPolicy', name, { base }, undefined);
    this.#policies.set(name, { config, tokenizer, adapted: 'frozen' });
    return { parameters, context: config.context, config, tokenizer };
  }

  /** In the engine: the number of trained parameters. */
  async #createIn(name: string, shape: PolicyShape, first: RandomStart | StoredState): Promise<number> {
    if ('seed' in first) return this.#thread.call('createPolicy', name, shape, first);
    const parameters = await this.#thread.call('createPolicy', name, shape);
    try {
      await this.#fill({ kind: 'policy', name }, first);
    } catch (error) {
      await this.#thread.call('dropPolicy', name);
      throw error;
    }
    return parameters;
  }

  /** Feeds the engine with what files hold: while it puts one piece into its place, the next is read. */
  async #fill(owner: Owner, { tensors, optimizer }: StoredState): Promise<void> {
    const buffers = optimizer?.buffers ?? [];
    const state = optimizer && { ...optimizer, buffers: buffers.map(({ name }) => name) };
    await this.#thread.call('beginState', owner, state);
    let complete = false;
    try {
      let last: Promise<void> = Promise.resolve();
      for (const tensor of [...tensors, ...buffers]) {
        for await (const piece of tensor.pieces()) {
          await last;
          last = this.#thread.callWith([piece.bytes.buffer], 'fillState', owner, piece);
          last.catch(() => {}); // whoever awaits it hears of it; that may be nobody, if reading fails meanwhile
        }
      }
      await last;
      complete = true;
    } finally {
      await this.#thread.call('endState', owner, complete);
    }
  }

  /** The base of this description: read or drawn when the first adapter asks for it. */
  #base(spec: BaseSpec, stored?: StoredPolicy): Promise<Base> {
    const key = JSON.stringify(spec);
    const found = this.#bases.get(key);
    if (found !== undefined) return found;
    const opened = this.#openBase(`base ${this.#nextBase++}`, spec, stored);
    this.#bases.set(key, opened);
    opened.catch(() => this.#bases.delete(key));
    return opened;
  }

  async #openBase(name: string, spec: BaseSpec, stored: StoredPolicy | undefined): Promise<Base> {
    let hash: Promise<string> | undefined;
    const compute = () => (hash ??= this.#thread.call('baseHash', name));
    if (spec.type === 'random') {
      const { config, tokenizer, seed, embeddingDeviation } = spec;
      await this.#thread.call('createBase', name, config, { seed, embeddingDeviation });
      return { name, config, tokenizer, directory: undefined, hash: compute };
    }
    const { directory } = spec;
    const { config, tokenizer, state } = stored ?? (await openPolicy(this.#files, directory, { optimizer: false }));
    await this.#thread.call('createBase', name, config, matrixKind(state));
    await this.#fill({ kind: 'base', name }, state);
    return { name, config, tokenizer, directory, hash: compute };
  }

  /** Logits after every token of one sequence: [T, vocabSize]. */
  logits(policy: string, tokens: Int32Array): Promise<Float32Array> {
    return this.#thread.call('logits', policy, tokens);
  }

  forward(policy: string, samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    const batch = packSamples(samples);
    return this.#thread.callWith(transferables(batch), 'forward', policy, batch);
  }

  forwardBackward(
    policy: string,
    samples: readonly TrainingSample[],
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult> {
    const batch = packSamples(samples);
    return this.#thread.callWith(transferables(batch), 'forwardBackward', policy, batch, options);
  }

  optimStep(policy: string, settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.#thread.call('optimStep', policy, settings);
  }

  async publish(policy: string): Promise<{ version: number }> {
    return { version: await this.#thread.call('publish', policy) };
  }

  async sync(policy: string): Promise<{ version: number }> {
    return { version: await this.#thread.call('sync', policy) };
  }

  copyWeights(from: string, to: string): Promise<void> {
    return this.#thread.call('copyWeights', from, to);
  }

  resetOptimizer(policy: string): Promise<void> {
    return this.#thread.call('resetOptimizer', policy);
  }

  async save(policy: string, directory: string, { optimizer, merge = false }: SaveOptions): Promise<void> {
    if (!merge) return this.#write(policy, directory, await this.#thread.call('exportState', policy, optimizer));
    const { config, tokenizer } = this.#known(policy);
    const state = { weights: await this.#thread.call('exportMerged', policy) };
    await writePolicy(this.#files, directory, { config, tokenizer, state });
  }

  /** Writes a state of this policy's shape. */
  async #write(policy: string, directory: string, state: PolicyState): Promise<void> {
    const { config, tokenizer, adapted } = this.#known(policy);
    const files = this.#files;
    if (adapted === undefined || adapted === 'frozen')
      return writePolicy(files, directory, { config, tokenizer, state });
    const { base, settings } = adapted;
    const model = base.directory ?? {
      config,
      tokenizer,
      state: { weights: await this.#thread.call('exportBase', base.name) },
    };
    await writeAdapter(files, directory, { settings, state }, config, model);
    await writeIdentity(files, directory, await base.hash());
  }

  async load(policy: string, directory: string, options: { optimizer: boolean }): Promise<void> {
    await this.#fill({ kind: 'policy', name: policy }, await this.#open(policy, directory, options));
  }

  /** Opens a state of this policy's shape. @throws CheckpointError */
  async #open(policy: string, directory: string, options: { readonly optimizer: boolean }): Promise<StoredState> {
    const { config, adapted } = this.#known(policy);
    if (adapted === 'frozen') throw new BackendError(`policy '${policy}' is frozen: nothing is loaded into it`);
    if (adapted === undefined) {
      const stored = await openPolicy(this.#files, directory, options);
      requireEqual(policy, directory, config, stored.config);
      return stored.state;
    }
    const { base, settings } = adapted;
    const stored = await openAdapter(this.#files, directory, config, options);
    requireEqual(policy, directory, settings, stored.settings);
    await saysIdentity(this.#files, directory, await base.hash(), base.directory ?? 'the model of this seed');
    return stored.state;
  }

  generate(request: GenerateRequest, signal?: AbortSignal): Promise<Generation> {
    signal?.throwIfAborted();
    if (this.#thread.dead !== undefined) return Promise.reject(this.#thread.dead);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const onAbort = () => {
        this.#take(id)?.reject(signal?.reason);
        this.#cancelled.push(id);
        this.#flushSoon();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.set(id, { resolve, reject, forget: () => signal?.removeEventListener('abort', onAbort) });
      this.#requests.push({ id, request });
      this.#flushSoon();
    });
  }

  async pause(): Promise<void> {
    this.#thread.post({ type: 'pause' });
  }

  async resume(): Promise<void> {
    this.#thread.post({ type: 'resume' });
  }

  async health(): Promise<{ ok: boolean; running: number; waiting: number }> {
    return { ok: true, running: this.#waiting.size, waiting: this.#requests.length };
  }

  dispose(): Promise<void> {
    return this.#thread.dispose();
  }

  #known(policy: string): Known {
    const known = this.#policies.get(policy);
    if (known === undefined) throw new BackendError(`there is no policy '${policy}'`);
    return known;
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.forget();
    return waiting;
  }

  #deliver({ id, tokens, logprobs, finishReason, policyVersion }: SamplerResult): void {
    this.#take(id)?.resolve({ tokens, logprobs, finishReason, policyVersion });
  }

  #flushSoon(): void {
    if (this.#requests.length + this.#cancelled.length > 1) return; // a flush is under way
    setImmediate(() => {
      const [requests, ids] = [this.#requests, this.#cancelled];
      this.#requests = [];
      this.#cancelled = [];
      if (requests.length > 0) this.#thread.post({ type: 'generate', requests });
      if (ids.length > 0) this.#thread.post({ type: 'cancel', ids });
    });
  }
}

/** Matrices that a file has in bfloat16 stay so where nothing trains them: widening would be exact, and take twice the room. */
function matrixKind({ tensors }: StoredState): MatrixKind {
  return tensors.every(({ shape, dtype }) => shape.length < 2 || dtype === 'BF16') ? 'bfloat16' : 'float32';
}

/** @throws CheckpointError naming what a policy has otherwise than a checkpoint */
function requireEqual<T extends object>(policy: string, directory: string, own: T, found: T): void {
  for (const key of Object.keys({ ...own, ...found }) as (keyof T & string)[]) {
    const [a, b] = [own, found].map((each) => JSON.stringify(each[key]) ?? 'none');
    if (a !== b) throw new CheckpointError(`${directory}: policy '${policy}' has ${key} ${a}, the checkpoint ${b}`);
  }
}
