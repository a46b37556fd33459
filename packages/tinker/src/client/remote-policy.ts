import type {
  ForwardBackwardResult,
  GenerateRequest,
  Generation,
  OnTokens,
  OptimStepResult,
  OptimStepSettings,
  PolicyHandle,
  StateOptions,
} from '@drmas/engine/contract';
import { BackendError, CheckpointError } from '@drmas/engine/errors';
import { type Files, unlessAborted } from '@drmas/engine/host';
import type { ForwardBackwardOptions } from '@drmas/engine/loss';
import type { Tokenizer, TrainingSample } from '@drmas/engine/nouns';
import type { LimitFunction } from 'p-limit';
import type { RemoteBase } from './remote-base.js';
import type { RemoteModel, RemoteModelSpec, SavedWeights } from './remote-model.js';
import { RemoteSampler } from './remote-sampler.js';
import { RemoteTrainer } from './remote-trainer.js';
import { readSavedPolicy, writeSavedPolicy } from './saved-policy.js';
import type { ServerProfile } from './server-profile.js';
import type { TinkerClient } from './wire/tinker-client.js';
import { isKind, TinkerError } from './wire/tinker-failure.js';

export interface Connection {
  readonly client: TinkerClient;
  readonly url: string;
  readonly profile: ServerProfile;
  readonly files: Files;
  /** Sampling requests in flight, of all policies together. */
  readonly limit: LimitFunction;
  /** Updates between savings of weights and optimiser on the server. */
  readonly saveEvery: number;
  /** Receives a message if the weights of a policy could not be saved between two checkpoints. */
  readonly onUnsaved: (message: string) => void;
}

export interface RemoteParts {
  readonly spec: RemoteModelSpec;
  readonly base: RemoteBase;
  readonly model: RemoteModel;
  readonly parameters: number | undefined;
  readonly warnings: readonly string[];
}

/** A LoRA model on a server, with its trainer and its sampler. */
export class RemotePolicy implements PolicyHandle {
  readonly parts: RemoteParts;
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly context: number;
  readonly vocabSize: number;
  readonly parameters: number | undefined;
  readonly warnings: readonly string[];
  readonly #connection: Connection;
  readonly #trainer: RemoteTrainer;
  readonly #sampler: RemoteSampler;
  /** The last save between two checkpoints. No checkpoint refers to it. */
  #periodic: SavedWeights | undefined;
  #isUnsaved = false;

  constructor(connection: Connection, parts: RemoteParts) {
    const { client, profile, url } = connection;
    const { model, base } = parts;
    this.#connection = connection;
    this.parts = parts;
    this.name = model.name;
    this.tokenizer = base.tokenizer;
    this.context = base.context;
    this.vocabSize = base.vocabSize;
    this.parameters = parts.parameters;
    this.warnings = parts.warnings;
    this.#trainer = new RemoteTrainer(model, profile, base);
    const { snapshotIsolation: isolation, extended } = profile;
    this.#sampler = new RemoteSampler({ client, url, model, limits: base, isolation, extended });
  }

  isOn(connection: Connection): boolean {
    return this.#connection === connection;
  }

  async logprobs(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    return this.#trainer.logprobs(samples);
  }

  async forwardBackward(
    samples: readonly TrainingSample[],
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult> {
    return this.#trainer.forwardBackward(samples, options);
  }

  discardGradient(): Promise<void> {
    return this.#trainer.discardGradient();
  }

  async optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    // Otherwise running samples would continue with other weights.
    if (!this.#connection.profile.snapshotIsolation) await this.#sampler.idle();
    return this.#trainer.optimStep(settings);
  }

  get version(): number | undefined {
    return this.#sampler.version;
  }

  async publish(keep?: number): Promise<number> {
    const { model } = this.parts;
    const due = model.updates - (model.saved?.updates ?? 0) >= this.#connection.saveEvery;
    const saved = due ? this.#savePeriodically() : undefined;
    const [version] = await Promise.all([this.#sampler.publish(keep), saved]);
    return version;
  }

  /**
   * Saves the weights in case the server loses the model, in place of the last such save. Training goes on if that
   * fails, with one warning, and the next publication tries again.
   */
  async #savePeriodically(): Promise<void> {
    const { client, profile, onUnsaved } = this.#connection;
    const { model } = this.parts;
    const superseded = this.#periodic;
    try {
      this.#periodic = await model.save();
    } catch (error) {
      if (client.closed || !(error instanceof TinkerError)) throw error;
      if (!this.#isUnsaved) onUnsaved(unsaved(model, error));
      this.#isUnsaved = true;
      return;
    }
    if (superseded !== undefined && profile.extended) await model.delete(superseded);
  }

  /** Servers send whole responses, so all tokens arrive at once. */
  async generate(request: GenerateRequest, signal?: AbortSignal, onTokens?: OnTokens): Promise<Generation> {
    signal?.throwIfAborted();
    const generated = this.#connection.limit(async () => {
      signal?.throwIfAborted();
      return this.#sampler.generate(request);
    });
    // The server finishes a running sample in any case.
    const generation = await (signal === undefined ? generated : unlessAborted(generated, signal));
    onTokens?.(generation.tokens);
    return generation;
  }

  async resetOptimizer(): Promise<void> {
    const { model } = this.parts;
    if (model.updates > 0) await model.replace(await model.save(), { optimizer: false });
  }

  /** @throws BackendError when the models differ, or the other policy is not on this server */
  async copyFrom(policy: PolicyHandle): Promise<void> {
    const { spec, model } = remoteParts(this.#connection, policy);
    if (JSON.stringify({ ...spec, seed: 0 }) !== JSON.stringify({ ...this.parts.spec, seed: 0 }))
      throw new BackendError(`the weights of policy '${policy.name}' do not fit '${this.name}': their models differ`);
    await this.parts.model.replace(await model.save(), { optimizer: false });
  }

  /** Makes the server save the weights with the optimiser's state, and writes their address to the directory. */
  async save(directory: string): Promise<void> {
    const { files, url } = this.#connection;
    const { spec, model } = this.parts;
    const { path, updates } = await model.save();
    await writeSavedPolicy(files, directory, {
      version: 1,
      url,
      path,
      baseModel: spec.baseModel,
      rank: spec.rank,
      updates,
      policyVersion: Math.max(0, this.#sampler.nextVersion - 1),
    });
  }

  /** @throws CheckpointError when the file cannot be used, or the server has lost the weights */
  async load(directory: string, { optimizer }: StateOptions): Promise<void> {
    const { files, url } = this.#connection;
    const { spec, model } = this.parts;
    const saved = await readSavedPolicy(files, directory, this.name, spec);
    try {
      await model.replace(saved, { optimizer });
    } catch (error) {
      if (!isKind(error, 'refused', 'lost', 'failed')) throw error;
      throw new CheckpointError(
        `${directory}: the server at ${url} cannot load ${saved.path}, saved at ${saved.url}: ${error.message}`,
      );
    }
    if (optimizer) this.#sampler.nextVersion = saved.policyVersion;
  }
}

function unsaved({ name, saved, updates }: RemoteModel, { message }: TinkerError): string {
  const loss = saved === undefined ? 'the run ends' : `its updates since update ${saved.updates} are lost`;
  return `policy '${name}' could not be saved after update ${updates}; if the server loses it, ${loss}: ${message}`;
}

/** The parts behind a handle. @throws BackendError if the handle belongs to no model on this server */
export function remoteParts(connection: Connection, policy: PolicyHandle): RemoteParts {
  if (policy instanceof RemotePolicy && policy.isOn(connection)) return policy.parts;
  throw new BackendError(`policy '${policy.name}' belongs to another backend`);
}
