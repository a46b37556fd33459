import type { BackendDeclaration } from '@drmas/engine/backends';
import type { Backend, Capabilities, Handles, Hardware, Role, WeightsSpec } from '@drmas/engine/contract';
import { BackendError } from '@drmas/engine/errors';
import { byteText, type Host, Secret } from '@drmas/engine/host';
import { lossTypes } from '@drmas/engine/loss';
import { adapterParameterCount } from '@drmas/engine/model';
import pLimit from 'p-limit';
import { remoteSpec, requireAdapter, requireModel, type ServedAdapter, scaleWarnings } from './adapter-spec.js';
import { prepareExport } from './export-adapter.js';
import { probeServer } from './probe/server-probe.js';
import { readBase } from './remote-base.js';
import { RemoteModel, type RemoteModelSpec } from './remote-model.js';
import { type Connection, type RemoteParts, RemotePolicy, remoteParts } from './remote-policy.js';
import { describeProfile, gradientPath, knownProfile, type ServerProfile } from './server-profile.js';
import { type TinkerSpec, tinkerSchema } from './tinker-spec.js';
import { defaultTiming, type Timing } from './wire/http.js';
import { TinkerClient } from './wire/tinker-client.js';

/** The most that a server can do. Losses are computed here, and run on any server through their gradients. */
const TINKER_CAPABILITIES: Capabilities = {
  roles: { frozen: ['adapter', 'like'], policy: ['adapter', 'like'], critic: [] },
  bases: ['directory'],
  losses: lossTypes,
  optimizers: ['adamw'],
  distribution: 'sampled',
  keepsVersions: true,
  gradientNorms: 'after',
  clipsGradients: true,
  precisions: ['float32'], // a client cannot choose: servers have their own
  agentAdapters: false,
  weights: 'there',
};

export interface TinkerOptions {
  /**
   * Its files contain the models. It receives messages about slow work, about models that were lost and made again,
   * and about weights that could not be saved.
   */
  readonly host: Pick<Host, 'files' | 'notify' | 'warn'>;
  /** Weights of the models that will be opened first. The probe's model is like the first of them. */
  readonly models: readonly WeightsSpec[];
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly timing?: Partial<Timing>;
}

/** LoRA models on a server that speaks the Tinker protocol. */
export class TinkerBackend implements Backend {
  readonly capabilities: Capabilities;
  readonly #spec: TinkerSpec;
  readonly #host: TinkerOptions['host'];
  readonly #connection: Connection;
  readonly #models = new Set<RemoteModel>();
  #disposed: Promise<void> | undefined;

  private constructor(spec: TinkerSpec, host: TinkerOptions['host'], client: TinkerClient, profile: ServerProfile) {
    const { url, concurrency, saveEvery } = spec;
    this.#spec = spec;
    this.#host = host;
    const onUnsaved = (message: string) => host.warn('backend.unsaved', message);
    this.#connection = { client, url, profile, files: host.files, limit: pLimit(concurrency), saveEvery, onUnsaved };
    const losses = gradientPath(profile) === undefined ? [] : TINKER_CAPABILITIES.losses;
    const { clipsGradients, snapshotIsolation: keepsVersions } = profile;
    this.capabilities = { ...TINKER_CAPABILITIES, losses, clipsGradients, keepsVersions };
  }

  /**
   * Connects, and measures the server's behaviour unless the spec names a profile.
   * @throws BackendError if the server cannot be reached, or lacks a feature that all training needs
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
      const { names, isDrmas } = await client.baseModels();
      const specs = options.models.map((weights) => remoteSpec(spec, requireAdapter(weights)));
      for (const { baseModel } of specs) requireModel(names, baseModel);
      const [first] = specs;
      if (spec.profile !== 'auto') return new TinkerBackend(spec, host, client, knownProfile(spec.profile));
      if (isDrmas) return new TinkerBackend(spec, host, client, knownProfile('drmas'));
      if (first === undefined) return new TinkerBackend(spec, host, client, knownProfile('hosted'));
      host.notify(
        `Measuring the behaviour of the server at ${spec.url}; the first time it may compile for a minute ...`,
      );
      return new TinkerBackend(spec, host, client, await probeServer({ client, ...first }));
    } catch (error) {
      client.close();
      throw error;
    }
  }

  get profile(): ServerProfile {
    return this.#connection.profile;
  }

  get hardware(): Hardware {
    const { profile, url } = this.#connection;
    return { kernels: 'tinker', isa: profile.name, notice: describeProfile(profile), server: { url, ...profile } };
  }

  /** @throws CheckpointError, TokenizerError about the base's directory; BackendError when the server refuses it */
  async open<R extends Role>(weights: WeightsSpec, role: R, name: string): Promise<Handles[R]> {
    const handles: { readonly [Name in Role]: () => Promise<Handles[Name]> } = {
      frozen: () => this.#open(weights, name),
      policy: () => this.#open(weights, name),
      critic: async () => {
        throw new BackendError(`critic '${name}': a Tinker server has no critics`);
      },
    };
    return handles[role]();
  }

  #open(weights: WeightsSpec, name: string): Promise<RemotePolicy> {
    if (this.#disposed !== undefined) throw new BackendError('the backend was disposed of');
    if (weights.type !== 'like') return this.#openAdapter(requireAdapter(weights), name);
    return this.#openLike(weights, name);
  }

  async #openAdapter(weights: ServedAdapter, name: string): Promise<RemotePolicy> {
    const { base: whole, adapter } = weights;
    const spec = remoteSpec(this.#spec, weights);
    const base = await readBase(this.#host.files, whole.directory, whole.chatTemplate);
    const model = await this.#create(spec, name);
    const parameters = base.config && adapterParameterCount(base.config, adapter);
    const parts: RemoteParts = { spec, base, model, parameters, warnings: scaleWarnings(name, adapter, model) };
    return new RemotePolicy(this.#connection, parts);
  }

  async #openLike(
    { policy, directory }: Extract<WeightsSpec, { readonly type: 'like' }>,
    name: string,
  ): Promise<RemotePolicy> {
    const { spec, base, parameters } = remoteParts(this.#connection, policy);
    const model = await this.#create(spec, name);
    const handle = new RemotePolicy(this.#connection, { spec, base, model, parameters, warnings: [] });
    if (directory === undefined) await handle.copyFrom(policy);
    else await handle.load(directory, { optimizer: false });
    return handle;
  }

  async #create(spec: RemoteModelSpec, name: string): Promise<RemoteModel> {
    const { client, profile } = this.#connection;
    const model = await RemoteModel.create({
      client,
      name,
      spec,
      idempotent: profile.seqIdIdempotent,
      extended: profile.extended,
      onRecovery: (message) => this.#host.warn('backend.recovered', message),
    });
    this.#models.add(model);
    return model;
  }

  /** Frees the models' places on the server, and stops all requests. */
  dispose(): Promise<void> {
    this.#disposed ??= this.#dispose();
    return this.#disposed;
  }

  async #dispose(): Promise<void> {
    await Promise.all(Array.from(this.#models, (model) => model.unload()));
    this.#connection.client.close();
  }
}

/** LoRA models on a server that speaks the Tinker protocol. */
export const server: BackendDeclaration<typeof tinkerSchema> = {
  schema: tinkerSchema,
  capabilities: TINKER_CAPABILITIES,
  keyVariable: 'TINKER_API_KEY',
  open: (spec, options) => TinkerBackend.connect(spec, options),
  plan: {
    readModel: readBase,
    memory: async () => undefined,
    memoryElsewhere(policies) {
      if (policies.length === 0) return "the server's memory";
      const trained = policies.reduce((sum, policy) => sum + policy.trained, 0);
      const largest = Math.max(...policies.map(({ whole }) => whole));
      return `on the server: a base of ${byteText(2 * largest)} in 16 bits, ${byteText(16 * trained)} for adapters, gradients and AdamW in 32 bits, and working memory`;
    },
  },
  prepareExport,
};
