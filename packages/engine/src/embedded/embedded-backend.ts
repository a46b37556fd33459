import { type AdapterSettings, type DecoderConfig, PRECISIONS, type Precision } from '../contract/architecture.js';
import type { Backend } from '../contract/backend.js';
import type { Capabilities } from '../contract/capabilities.js';
import type { Handles, Role } from '../contract/handles.js';
import type { AgentAdapters, BaseSpec, OwnWeights, WeightsSpec } from '../contract/weights-spec.js';
import { BackendError } from '../errors.js';
import type { Files } from '../host.js';
import { lossTypes } from '../loss/loss-spec.js';
import type { BaseKind } from '../model/decoder/weights/decoder-tensors.js';
import { blockFormats } from '../model/formats/decoder-layout.js';
import { optimizerTypes } from '../model/optimizers/index.js';
import type { DeviceCounts } from '../tensor/device-counts.js';
import { saysIdentity } from './base-identity.js';
import { EmbeddedCritic } from './embedded-critic.js';
import { type Base, type EmbeddedModel, type EngineServices, fillState, openState } from './embedded-model.js';
import { EmbeddedFrozen, EmbeddedPolicy, modelOf } from './embedded-policy.js';
import { GenerationQueue } from './generation-queue.js';
import { openAdapter, openPolicy, openTrunk, type StoredAdapter, type StoredPolicy } from './state-files.js';
import type { StoredState } from './stored-state.js';
import type { RandomStart } from './thread/engine.js';
import type { EngineHardware, EngineThread } from './thread/engine-thread.js';
import type { PolicyShape } from './thread/resident-policy.js';

const wholes = ['random', 'directory'] as const;
const anyWeights = [...wholes, 'adapter', 'saved-adapter', 'like'] as const;

export const EMBEDDED_CAPABILITIES: Capabilities = {
  roles: { frozen: anyWeights, policy: anyWeights, critic: ['like'] },
  bases: wholes,
  precisions: PRECISIONS,
  agentAdapters: true,
  losses: lossTypes,
  optimizers: optimizerTypes,
  distribution: 'whole',
  keepsVersions: true,
  gradientNorms: 'before-update',
  clipsGradients: true,
  weights: 'here',
};

type OpenedDirectory = StoredPolicy & { readonly directory: string };

interface NamedPrecision {
  readonly name: string;
  readonly precision: Precision;
}

/** The capabilities in which an engine behind a link may differ from the engine on this package's own kernels. */
export interface EngineTraits {
  /** The precisions of the models that will be opened. Other models are refused. Default: all. */
  readonly precisions?: readonly Precision[] | undefined;
  /** The precision of models that name none. Default: float32. */
  readonly defaultPrecision?: Precision;
}

/** The engine of this package: trains and samples behind a link, such as a worker thread of this process. */
export class EmbeddedBackend implements Backend {
  readonly capabilities = EMBEDDED_CAPABILITIES;
  readonly #services: EngineServices;
  /** The bases by their description: the engine holds equal ones once. */
  readonly #bases = new Map<string, Promise<Base>>();
  readonly #precisions: readonly Precision[];
  readonly #defaultPrecision: Precision;
  #nextId = 0;

  /** On an engine that is ready. */
  constructor(
    thread: EngineThread,
    files: Files,
    { precisions = PRECISIONS, defaultPrecision = 'float32' }: EngineTraits = {},
  ) {
    this.#precisions = precisions;
    this.#defaultPrecision = defaultPrecision;
    this.#services = { thread, files, queue: new GenerationQueue(thread) };
  }

  get hardware(): EngineHardware {
    return this.#services.thread.hardware;
  }

  /** The memory of a GPU, and the work that it received; undefined on the processor. */
  deviceCounts(): Promise<DeviceCounts | undefined> {
    return this.#services.thread.call('deviceCounts');
  }

  /** @throws CheckpointError when a directory cannot be read or holds a model that the engine cannot compute */
  async open<R extends Role>(weights: WeightsSpec, role: R, name: string): Promise<EmbeddedHandles[R]> {
    const handles: { readonly [Name in Role]: () => Promise<EmbeddedHandles[Name]> } = {
      frozen: async () => new EmbeddedFrozen(this.#services, await this.#openFrozen(weights, name)),
      policy: async () => new EmbeddedPolicy(this.#services, await this.#openModel(weights, name)),
      critic: async () => {
        if (weights.type !== 'like') throw new BackendError(`critic '${name}': expected weights like a policy's`);
        const policy = modelOf(this.#services, weights.policy);
        return EmbeddedCritic.open(this.#services, this.#nextId++, policy, weights.directory);
      },
    };
    return handles[role]();
  }

  /**
   * Opens a model that cannot be trained: the whole model that `openPolicy` read, with the adapter that `openAdapter`
   * read, if there is one.
   */
  async openStored(
    directory: string,
    whole: OpenedDirectory,
    adapter: StoredAdapter | undefined,
  ): Promise<EmbeddedFrozen> {
    const base = await this.#base({ type: 'directory', directory: whole.directory }, whole);
    if (adapter !== undefined) await saysIdentity(this.#services.files, directory, () => base.hash(), whole.directory);
    const named = { name: directory, precision: this.#defaultPrecision };
    const model =
      adapter === undefined
        ? await this.#freeze(named, base)
        : await this.#adapt(named, base, adapter.settings, adapter.state);
    return new EmbeddedFrozen(this.#services, model);
  }

  dispose(): Promise<void> {
    return this.#services.thread.dispose();
  }

  /** A whole model that is not trained never changes. So it is a base without an adapter. */
  async #openFrozen(weights: WeightsSpec, name: string): Promise<EmbeddedModel> {
    if (weights.type !== 'random' && weights.type !== 'directory') return this.#openModel(weights, name);
    const { precision = this.#defaultPrecision, agentAdapters, ...base } = weights;
    if (agentAdapters !== undefined) return this.#openModel(weights, name);
    return this.#freeze({ name, precision }, await this.#base(base));
  }

  #openModel(weights: WeightsSpec, name: string): Promise<EmbeddedModel> {
    if (weights.type === 'like')
      return this.#openLike(name, modelOf(this.#services, weights.policy), weights.directory);
    return this.#openOwn(weights, { name, precision: weights.precision ?? this.#defaultPrecision });
  }

  async #openOwn(weights: OwnWeights, named: NamedPrecision): Promise<EmbeddedModel> {
    if (weights.agentAdapters !== undefined) return this.#openTrunk(weights, weights.agentAdapters, named);
    switch (weights.type) {
      case 'random': {
        const { config, tokenizer, seed, embeddingDeviation } = weights;
        return this.#create({ ...named, config, tokenizer }, config, { seed, embeddingDeviation });
      }
      case 'directory': {
        const { config, tokenizer, state } = await openPolicy(this.#services.files, weights.directory, {
          optimizer: false,
          chatTemplate: weights.chatTemplate,
        });
        return this.#create({ ...named, config, tokenizer }, config, state);
      }
      case 'adapter':
        return this.#adapt(named, await this.#base(weights.base), weights.adapter, { seed: weights.seed });
      case 'saved-adapter':
        return this.#openSavedAdapter(named, weights.directory, await this.#base(weights.base));
      case 'of-kind':
        throw new BackendError(`'${named.name}': a model of type '${weights.model.type}' is no language model`);
    }
  }

  /** A trunk with adapters of agents: both from seeds, both from a directory, or new adapters on a trunk from there. */
  async #openTrunk(
    weights: OwnWeights,
    { agents, settings, seed: adaptersSeed }: AgentAdapters,
    named: NamedPrecision,
  ): Promise<EmbeddedModel> {
    const agentAdapters = { agents, settings };
    const create = (
      { config, tokenizer }: Pick<Base, 'config' | 'tokenizer'>,
      first: RandomStart | StoredState,
      seed?: number,
    ) => {
      const shape = { trunk: config, agents, adapter: settings };
      return this.#create({ ...named, config, tokenizer, agentAdapters }, shape, first, seed);
    };
    if (weights.type === 'random') {
      const { seed, embeddingDeviation } = weights;
      return create(weights, { seed, embeddingDeviation, adaptersSeed });
    }
    if (weights.type !== 'directory')
      throw new BackendError(`'${named.name}': adapters of agents need a whole model, got '${weights.type}'`);
    const { directory, chatTemplate } = weights;
    const options = { optimizer: false, chatTemplate };
    const stored =
      adaptersSeed === undefined
        ? await openTrunk(this.#services.files, directory, agentAdapters, options)
        : await openPolicy(this.#services.files, directory, options);
    return create(stored, stored.state, adaptersSeed);
  }

  async #openSavedAdapter(named: NamedPrecision, directory: string, base: Base): Promise<EmbeddedModel> {
    const { files } = this.#services;
    const { settings, state } = await openAdapter(files, directory, base.config, { optimizer: false });
    const on = base.directory ?? 'a model from a seed';
    const identified = await saysIdentity(files, directory, () => base.hash(), on);
    const model = await this.#adapt(named, base, settings, state);
    if (identified) return model;
    return { ...model, warnings: [`${directory} does not say which weights it was trained on; it is put on ${on}`] };
  }

  async #openLike(name: string, policy: EmbeddedModel, directory: string | undefined): Promise<EmbeddedModel> {
    const { config, tokenizer, precision, adapted, agentAdapters } = policy;
    const whole =
      agentAdapters === undefined
        ? config
        : { trunk: config, agents: agentAdapters.agents, adapter: agentAdapters.settings };
    const shape = adapted === undefined ? whole : { base: adapted.base.id, adapter: adapted.settings };
    const first =
      directory === undefined
        ? { like: policy.id }
        : await openState(this.#services, { ...policy, name }, directory, { optimizer: false });
    const about = { name, config, tokenizer, precision, adapted, agentAdapters };
    return this.#create(about, shape, first);
  }

  #adapt(
    named: NamedPrecision,
    base: Base,
    settings: AdapterSettings,
    first: RandomStart | StoredState,
  ): Promise<EmbeddedModel> {
    const { id, config, tokenizer } = base;
    const about = { ...named, config, tokenizer, adapted: { base, settings } };
    return this.#create(about, { base: id, adapter: settings }, first);
  }

  #freeze(named: NamedPrecision, { id, config, tokenizer }: Base): Promise<EmbeddedModel> {
    return this.#create({ ...named, config, tokenizer }, { base: id }, undefined);
  }

  async #create(
    about: Omit<EmbeddedModel, 'id' | 'parameters' | 'adapted'> & Partial<Pick<EmbeddedModel, 'adapted'>>,
    shape: PolicyShape,
    first: RandomStart | { readonly like: number } | StoredState | undefined,
    adaptersSeed?: number,
  ): Promise<EmbeddedModel> {
    const { thread } = this.#services;
    const id = this.#nextId++;
    const { name, precision } = about;
    if (!this.#precisions.includes(precision))
      throw new BackendError(`'${name}' is in ${precision}, but the engine was started for ${this.#precisions}`);
    if (first === undefined || !('tensors' in first)) {
      const parameters = await thread.call('createPolicy', id, { name, shape, precision }, first);
      return { adapted: undefined, ...about, id, parameters };
    }
    const begun = adaptersSeed === undefined ? undefined : { adaptersSeed };
    const parameters = await thread.call('createPolicy', id, { name, shape, precision }, begun);
    try {
      await fillState(this.#services, { kind: 'policy', id }, first);
    } catch (error) {
      await thread.call('dropPolicy', id);
      throw error;
    }
    return { adapted: undefined, ...about, id, parameters };
  }

  /** The base of this description. It is read or drawn when the first model needs it. */
  #base(spec: BaseSpec, stored?: StoredPolicy): Promise<Base> {
    const key = JSON.stringify(spec);
    const present = this.#bases.get(key);
    if (present !== undefined) return present;
    const opened = this.#openBase(spec, stored);
    this.#bases.set(key, opened);
    opened.catch(() => this.#bases.delete(key));
    return opened;
  }

  async #openBase(spec: BaseSpec, stored: StoredPolicy | undefined): Promise<Base> {
    const { thread, files } = this.#services;
    const id = this.#nextId++;
    let computed: Promise<string> | undefined;
    const hash = () => (computed ??= thread.call('baseHash', id));
    if (spec.type === 'random') {
      const { config, tokenizer, seed, embeddingDeviation } = spec;
      await thread.call('createBase', id, config, { seed, embeddingDeviation });
      return { id, config, tokenizer, directory: undefined, hash };
    }
    const { directory, chatTemplate } = spec;
    const { config, tokenizer, state } =
      stored ?? (await openPolicy(files, directory, { optimizer: false, chatTemplate }));
    const inBlocks = await thread.call('createBase', id, config, baseKind(state, config));
    await fillState(this.#services, { kind: 'base', id }, state, { inBlocks });
    return { id, config, tokenizer, directory, hash };
  }
}

interface EmbeddedHandles extends Handles {
  readonly frozen: EmbeddedFrozen;
  readonly policy: EmbeddedPolicy;
}

/**
 * The number type of a base's matrices. Matrices stored in bfloat16 or in blocks stay so, since a base is not trained:
 * float32 would have the same values and take two to seven times the memory.
 */
function baseKind({ tensors }: StoredState, config: DecoderConfig): BaseKind {
  const formats = new Map(tensors.map(({ name, blocks }) => [name, blocks?.format]));
  const inBlocks = blockFormats(config, (name) => formats.get(name));
  if (inBlocks !== undefined) return inBlocks;
  return tensors.every(({ shape, dtype }) => shape.length < 2 || dtype === 'BF16') ? 'bfloat16' : 'float32';
}
