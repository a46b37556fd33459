import pLimit from 'p-limit';
import type { AdapterSettings, ProjectionName } from '../../contract/architecture.js';
import type { ForwardBackwardResult, TrainBackend } from '../../contract/backend.js';
import type { Capabilities, Hardware } from '../../contract/capabilities.js';
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer.js';
import type { GenerateRequest, Generation, SampleBackend } from '../../contract/sampling.js';
import type { PolicyInfo, PolicySpec } from '../../contract/weights.js';
import { BackendError, CheckpointError } from '../../core/errors.js';
import type { Host } from '../../core/host.js';
import type { TrainingSample } from '../../core/sample.js';
import { Secret } from '../../core/secret.js';
import type { ForwardBackwardOptions } from '../../loss/objective/objective-options.js';
import { adapterParameterCount } from '../../model/decoder/weights/adapter-tensors.js';
import { EMBEDDED_CAPABILITIES } from '../embedded/embedded-backend.js';
import { Gate } from './gate.js';
import { probeServer } from './probe/server-probe.js';
import { readBase } from './remote-base.js';
import { RemoteModel, type RemoteModelSpec } from './remote-model.js';
import { RemoteSampler } from './remote-sampler.js';
import { RemoteTrainer } from './remote-trainer.js';
import { readSavedPolicy, writeSavedPolicy } from './saved-policy.js';
import { describeProfile, gradientPath, knownProfile, type ServerProfile } from './server-profile.js';
import type { TinkerSpec } from './tinker-spec.js';
import { defaultTiming, type Timing } from './wire/http.js';
import { TinkerClient } from './wire/tinker-client.js';
import { isKind } from './wire/tinker-failure.js';

/** The most that a server can do: losses are ours, and run on any server through their gradients. */
export const TINKER_CAPABILITIES: Capabilities = {
  losses: EMBEDDED_CAPABILITIES.losses,
  optimizers: ['adamw'],
  entropyBonus: false,
  critic: false,
  fullParameters: false,
  randomModels: false,
  anyTemperature: false,
  clipsGradients: true,
  skipsUpdates: false,
  references: true,
  savedAdapters: false,
  localWeights: false,
};

export interface TinkerOptions {
  /** Its files hold the models; it is notified of what takes long, and warned of models that were lost and made again. */
  readonly host: Pick<Host, 'files' | 'notify' | 'warn'>;
  /** The policies that will be created; the probe's own model is like the first. */
  readonly policies: readonly PolicySpec[];
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly timing?: Partial<Timing>;
}

interface Policy {
  readonly spec: RemoteModelSpec;
  readonly model: RemoteModel;
  readonly trainer: RemoteTrainer;
  readonly sampler: RemoteSampler;
}

/** LoRA models on a server that speaks the Tinker protocol. */
export class TinkerBackend implements TrainBackend, SampleBackend {
  readonly capabilities: Capabilities;
  readonly profile: ServerProfile;
  readonly #spec: TinkerSpec;
  readonly #client: TinkerClient;
  readonly #options: TinkerOptions;
  readonly #policies = new Map<string, Policy | 'opening'>();
  readonly #limit: ReturnType<typeof pLimit>;
  readonly #gate = new Gate();
  #disposed: Promise<void> | undefined;

  private constructor(spec: TinkerSpec, client: TinkerClient, profile: ServerProfile, options: TinkerOptions) {
    this.#spec = spec;
    this.#client = client;
    this.#options = options;
    this.#limit = pLimit(spec.concurrency);
    this.profile = profile;
    const losses = gradientPath(profile) === undefined ? [] : TINKER_CAPABILITIES.losses;
    this.capabilities = { ...TINKER_CAPABILITIES, losses, clipsGradients: profile.clipsGradients };
  }

  /**
   * Connects, and measures what the server does unless the spec names its profile.
   * @throws BackendError when the server cannot be reached or lacks what any training needs
   */
  static async connect(spec: TinkerSpec, options: TinkerOptions): Promise<TinkerBackend> {
    const { environment = process.env, host } = options;
    const key = environment.TINKER_API_KEY;
    const client = new TinkerClient({
      url: spec.url,
      apiKey: spec.apiKey ?? (key ? new Secret(key) : undefined),
      timing: { ...defaultTiming, total: spec.deadlineSeconds, ...options.timing },
    });
    try {
      const models = await client.baseModels();
      const specs = options.policies.map((policy) => adapterSpec(spec, policy));
      for (const { baseModel } of specs) requireModel(models, baseModel);
      const [first] = specs;
      if (spec.profile !== 'auto' || first === undefined) {
        const profile = knownProfile(spec.profile === 'auto' ? 'hosted' : spec.profile);
        return new TinkerBackend(spec, client, profile, options);
      }
      host.notify(`Measuring what the server at ${spec.url} does; the first time it may compile for a minute ...`);
      return new TinkerBackend(spec, client, await probeServer({ client, ...first }), options);
    } catch (error) {
      client.close();
      throw error;
    }
  }

  get hardware(): Hardware {
    const { profile } = this;
    return {
      kernels: 'tinker',
      isa: profile.name,
      notice: describeProfile(profile),
      server: { url: this.#spec.url, ...profile },
    };
  }

  /** @throws CheckpointError, TokenizerError about the base's directory; BackendError when the server refuses the model */
  async createPolicy(name: string, spec: PolicySpec): Promise<PolicyInfo> {
    if (this.#policies.has(name)) throw new BackendError(`policy '${name}' exists already`);
    if (spec.type !== 'adapter' || spec.base.type !== 'directory')
      throw new BackendError(`policy '${name}': a Tinker server trains adapters on models that it has, by directory`);
    this.#policies.set(name, 'opening');
    try {
      const own = adapterSpec(this.#spec, spec);
      const base = await readBase(this.#options.host.files, spec.base.directory);
      const model = await RemoteModel.create({
        client: this.#client,
        name,
        spec: own,
        idempotent: this.profile.seqIdIdempotent,
        onRecovery: (message) => this.#options.host.warn('backend.recovered', message),
      });
      this.#policies.set(name, {
        spec: own,
        model,
        trainer: new RemoteTrainer(model, this.profile, base),
        sampler: new RemoteSampler({
          client: this.#client,
          model,
          limits: base,
          isolation: this.profile.snapshotIsolation,
        }),
      });
      return {
        parameters: base.config && adapterParameterCount(base.config, spec.adapter),
        context: base.context,
        tokenizer: base.tokenizer,
        warnings: scaleWarnings(name, spec.adapter, model),
      };
    } catch (error) {
      this.#policies.delete(name);
      throw error;
    }
  }

  async forward(policy: string, samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    return this.#policy(policy).trainer.forward(samples);
  }

  async forwardBackward(
    policy: string,
    samples: readonly TrainingSample[],
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult> {
    return this.#policy(policy).trainer.forwardBackward(samples, options);
  }

  async optimStep(policy: string, settings: OptimStepSettings): Promise<OptimStepResult> {
    const { trainer, sampler } = this.#policy(policy);
    // What is being sampled would go on with other weights.
    if (!this.profile.snapshotIsolation) await sampler.idle();
    return trainer.optimStep(settings);
  }

  async publish(policy: string): Promise<{ version: number }> {
    const { model, sampler } = this.#policy(policy);
    const due = model.updates - (model.saved?.updates ?? 0) >= this.#spec.saveEvery;
    const saved = due ? model.save() : undefined;
    const [version] = await Promise.all([sampler.publish(), saved]);
    return version;
  }

  async sync(policy: string): Promise<{ version: number }> {
    return this.#policy(policy).sampler.sync();
  }

  async copyWeights(from: string, to: string): Promise<void> {
    const [source, target] = [this.#policy(from), this.#policy(to)];
    if (JSON.stringify({ ...source.spec, seed: 0 }) !== JSON.stringify({ ...target.spec, seed: 0 }))
      throw new BackendError(`the weights of policy '${from}' do not fit '${to}': their models differ`);
    await target.model.replace(await source.model.save(), { optimizer: false });
  }

  async resetOptimizer(policy: string): Promise<void> {
    const { model } = this.#policy(policy);
    if (model.updates > 0) await model.replace(await model.save(), { optimizer: false });
  }

  /** Has the server save the weights, with the optimiser's state, and writes where. */
  async save(policy: string, directory: string): Promise<void> {
    const { model, spec, sampler } = this.#policy(policy);
    const { path, updates } = await model.save();
    await writeSavedPolicy(this.#options.host.files, directory, {
      version: 1,
      url: this.#spec.url,
      path,
      baseModel: spec.baseModel,
      rank: spec.rank,
      updates,
      policyVersion: Math.max(0, sampler.nextVersion - 1),
    });
  }

  /** @throws CheckpointError when the file cannot be used, or the server no longer has the weights */
  async load(policy: string, directory: string, { optimizer }: { optimizer: boolean }): Promise<void> {
    const { model, spec, sampler } = this.#policy(policy);
    const saved = await readSavedPolicy(this.#options.host.files, directory, policy, spec);
    try {
      await model.replace(saved, { optimizer });
    } catch (error) {
      if (!isKind(error, 'refused', 'lost', 'failed')) throw error;
      throw new CheckpointError(
        `${directory}: the server at ${this.#spec.url} cannot load ${saved.path}, saved at ${saved.url}: ${error.message}`,
      );
    }
    if (optimizer) sampler.nextVersion = saved.policyVersion;
  }

  async generate(request: GenerateRequest, signal?: AbortSignal): Promise<Generation> {
    signal?.throwIfAborted();
    const { sampler } = this.#policy(request.policy);
    const generated = this.#limit(async () => {
      await this.#gate.open(signal);
      return sampler.generate(request);
    });
    return signal === undefined ? generated : unlessAborted(generated, signal);
  }

  async pause(): Promise<void> {
    this.#gate.close();
  }

  async resume(): Promise<void> {
    this.#gate.release();
  }

  async health(): Promise<{ ok: boolean; running: number; waiting: number }> {
    const { activeCount, pendingCount } = this.#limit;
    return { ok: !this.#client.closed, running: activeCount, waiting: pendingCount };
  }

  /** Frees the models' places on the server; ends all that is under way. */
  dispose(): Promise<void> {
    this.#disposed ??= this.#dispose();
    return this.#disposed;
  }

  async #dispose(): Promise<void> {
    const open = [...this.#policies.values()].filter((policy) => policy !== 'opening');
    this.#policies.clear();
    await Promise.all(open.map(({ model }) => model.unload()));
    this.#client.close();
  }

  #policy(name: string): Policy {
    if (this.#disposed !== undefined) throw new BackendError('the backend was disposed of');
    const policy = this.#policies.get(name);
    if (policy === undefined || policy === 'opening') throw new BackendError(`there is no policy '${name}'`);
    return policy;
  }
}

/** The protocol has no field for an adapter's alpha. */
function scaleWarnings(policy: string, { alpha, rank }: AdapterSettings, model: RemoteModel): string[] {
  if (model.alpha === alpha) return [];
  const served =
    model.alpha === undefined
      ? `the server chooses LoRA's alpha and does not tell it; the recipe's ${alpha} is not sent`
      : `the server gives LoRA's alpha as ${model.alpha}, not the recipe's ${alpha}`;
  return [`policy '${policy}': ${served}. What the adapter of rank ${rank} adds is scaled by alpha / rank`];
}

const ATTENTION: readonly ProjectionName[] = ['q', 'k', 'v', 'o'];
const FEED_FORWARD: readonly ProjectionName[] = ['gate', 'up', 'down'];

/** @throws BackendError where the targets are not all of attention's, all of the feed-forward block's, or both */
function adapterSpec({ models }: TinkerSpec, policy: PolicySpec): RemoteModelSpec {
  if (policy.type !== 'adapter' || policy.base.type !== 'directory')
    throw new BackendError('a Tinker server trains adapters on models that it has, by directory');
  const { base, adapter, seed } = policy;
  const attention = covers(adapter, ATTENTION);
  const feedForward = covers(adapter, FEED_FORWARD);
  const { directory, name = directory } = base;
  return { baseModel: models[name] ?? name, rank: adapter.rank, seed, attention, feedForward };
}

function covers({ targets }: AdapterSettings, group: readonly ProjectionName[]): boolean {
  const found = group.filter((name) => targets.includes(name));
  if (found.length === 0 || found.length === group.length) return found.length > 0;
  throw new BackendError(`a Tinker server adapts ${group.join(', ')} together or not at all, got ${found.join(', ')}`);
}

function requireModel(models: readonly string[], name: string): void {
  if (models.length > 0 && !models.includes(name))
    throw new BackendError(
      `the server has no model '${name}'; it has ${models.join(', ')}. Where it calls a model otherwise than the recipe, say so: tinker({ models: { '${name}': ... } })`,
    );
}

/** What is under way on the server goes on there; nobody waits for it. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
