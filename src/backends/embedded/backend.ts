import type {
  Capabilities,
  DecoderConfig,
  ForwardBackwardOptions,
  ForwardBackwardResult,
  GenerateRequest,
  Generation,
  OptimStepResult,
  OptimStepSettings,
  PolicyInfo,
  PolicySpec,
  SampleBackend,
  TrainBackend,
} from '../../core/backend.js';
import { BackendError, CheckpointError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import type { TrainingSample } from '../../core/sample.js';
import type { SamplerResult } from '../../model/decoder/sampler.js';
import type { EngineArguments } from './protocol.js';
import { packSamples, transferables } from './sample-batch.js';
import { readPolicy, type StoredPolicy, writePolicy } from './state-files.js';
import { type EngineHardware, EngineThread } from './thread.js';

export interface EmbeddedOptions {
  /** Threads of the kernels; at least 1. */
  readonly threads: number;
  readonly files: Files;
  /** Told what takes long at the start, such as compiling the kernels. */
  readonly onProgress?: (message: string) => void;
}

interface Waiting {
  readonly resolve: (generation: Generation) => void;
  readonly reject: (error: unknown) => void;
  readonly forget: () => void;
}

/** The engine of this package: trains and samples in a worker thread of this process. */
export class EmbeddedBackend implements TrainBackend, SampleBackend {
  readonly capabilities: Capabilities = {
    losses: ['ppo-clip', 'cispo', 'gspo'],
    entropyBonus: false,
    critic: false,
    fullParameters: true,
  };
  readonly #thread: EngineThread;
  readonly #files: Files;
  readonly #policies = new Map<string, Omit<StoredPolicy, 'state'>>();
  readonly #waiting = new Map<number, Waiting>();
  /** Requests and cancellations of this event-loop turn, sent together. */
  #requests: { id: number; request: GenerateRequest }[] = [];
  #cancelled: number[] = [];
  #nextId = 0;

  private constructor(thread: EngineThread, files: Files) {
    this.#thread = thread;
    this.#files = files;
    thread.onMessage = (message) => {
      if (message.type === 'generated') for (const result of message.results) this.#deliver(result);
      else this.#take(message.id)?.reject(new BackendError(message.error.message));
    };
    thread.onDeath = (error) => {
      for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(error);
    };
  }

  static async start({ threads, files, onProgress }: EmbeddedOptions): Promise<EmbeddedBackend> {
    return new EmbeddedBackend(await EngineThread.start(threads, onProgress), files);
  }

  get hardware(): EngineHardware {
    return this.#thread.hardware;
  }

  /** @throws CheckpointError when a directory cannot be read or holds what the engine cannot compute */
  async createPolicy(name: string, spec: PolicySpec): Promise<PolicyInfo> {
    if (spec.type === 'directory') {
      return this.adoptPolicy(name, await readPolicy(this.#files, spec.directory, { optimizer: false }));
    }
    return this.#create(name, spec, { seed: spec.seed });
  }

  /** A policy from what `readPolicy` read. */
  adoptPolicy(name: string, stored: StoredPolicy): Promise<PolicyInfo> {
    return this.#create(name, stored, stored.state);
  }

  async #create(
    name: string,
    { config, tokenizer }: Omit<StoredPolicy, 'state'>,
    first: EngineArguments<'createPolicy'>[2],
  ): Promise<PolicyInfo> {
    const parameters = await this.#thread.call('createPolicy', name, config, first);
    this.#policies.set(name, { config, tokenizer });
    return { parameters, config, tokenizer };
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

  async save(policy: string, directory: string, { optimizer }: { optimizer: boolean }): Promise<void> {
    const known = this.#known(policy);
    const state = await this.#thread.call('exportState', policy, optimizer);
    await writePolicy(this.#files, directory, { ...known, state });
  }

  async load(policy: string, directory: string, options: { optimizer: boolean }): Promise<void> {
    const { config } = this.#known(policy);
    const stored = await readPolicy(this.#files, directory, options);
    const keys = Object.keys({ ...config, ...stored.config }) as (keyof DecoderConfig)[];
    for (const key of keys) {
      const [own, found] = [config, stored.config].map((each) => JSON.stringify(each[key]) ?? 'none');
      if (own === found) continue;
      throw new CheckpointError(`${directory}: policy '${policy}' has ${key} ${own}, the checkpoint ${found}`);
    }
    await this.#thread.call('importState', policy, stored.state);
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

  #known(policy: string): Omit<StoredPolicy, 'state'> {
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
