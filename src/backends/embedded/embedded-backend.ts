import { type AdapterSettings, type Device, PRECISIONS, type Precision } from '../../contract/architecture.js';
import type { Backend } from '../../contract/backend.js';
import type { Capabilities } from '../../contract/capabilities.js';
import type { Handles, Role } from '../../contract/handles.js';
import type { BaseSpec, OwnWeights, WeightsSpec } from '../../contract/weights-spec.js';
import { BackendError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import { lossTypes } from '../../loss/loss-spec.js';
import type { MatrixKind } from '../../tensor/kernel-arguments.js';
import type { DeviceCounts } from '../../tensor/webgpu/device-counts.js';
import { saysIdentity } from './base-identity.js';
import { EmbeddedCritic } from './embedded-critic.js';
import { type Base, type EmbeddedModel, type EngineRoom, fillState, openState } from './embedded-model.js';
import { EmbeddedFrozen, EmbeddedPolicy, modelOf } from './embedded-policy.js';
import { GenerationQueue } from './generation-queue.js';
import { openAdapter, openPolicy, type StoredAdapter, type StoredPolicy } from './state-files.js';
import type { StoredState } from './stored-state.js';
import type { RandomStart } from './thread/engine.js';
import { type EngineHardware, EngineThread } from './thread/engine-thread.js';
import type { PolicyShape } from './thread/resident-policy.js';

export interface EmbeddedOptions {
  /** Threads of the kernels; at least 1. */
  readonly threads: number;
  readonly files: Files;
  /** Default: the processor, unless `DRMAS_KERNELS` names a GPU's kernels. */
  readonly device?: Device | undefined;
  /** Keep only the layers' inputs for the backward pass. Default false. */
  readonly recompute?: boolean | undefined;
  /** Receives what takes long at the start, such as compiling the kernels. */
  readonly onProgress?: (message: string) => void;
}

const wholes = ['random', 'directory'] as const;
const anyWeights = [...wholes, 'adapter', 'saved-adapter', 'like'] as const;

export const EMBEDDED_CAPABILITIES: Capabilities = {
  roles: { frozen: anyWeights, policy: anyWeights, critic: ['like'] },
  bases: wholes,
  precisions: PRECISIONS,
  losses: lossTypes,
  optimizers: ['adamw', 'sgd', 'nigt'],
  distribution: 'whole',
  keepsVersions: true,
  gradientNorms: 'before-update',
  clipsGradients: true,
  weights: 'here',
};

/** A whole model that was opened in a directory. */
type OpenedDirectory = StoredPolicy & { readonly directory: string };

/** A model, and what a person should know about how it was opened. */
interface Opened {
  readonly model: EmbeddedModel;
  readonly warnings?: readonly string[];
}

/** What messages call a model, and the precision of its products. */
interface Named {
  readonly name: string;
  readonly precision: Precision;
}

/** The engine of this package: trains and samples in a worker thread of this process. */
export class EmbeddedBackend implements Backend {
  readonly capabilities = EMBEDDED_CAPABILITIES;
  readonly #room: EngineRoom;
  /** Equal bases are held once, by their description. */
  readonly #bases = new Map<string, Promise<Base>>();
  #nextId = 0;

  /** On an engine that is ready. */
  constructor(thread: EngineThread, files: Files) {
    this.#room = { thread, files, queue: new GenerationQueue(thread) };
  }

  static async start({ threads, files, device, recompute, onProgress }: EmbeddedOptions): Promise<EmbeddedBackend> {
    return new EmbeddedBackend(await EngineThread.start({ threads, device, recompute }, onProgress), files);
  }

  get hardware(): EngineHardware {
    return this.#room.thread.hardware;
  }

  /** What a GPU was given and holds; undefined where the processor computes. */
  deviceCounts(): Promise<DeviceCounts | undefined> {
    return this.#room.thread.call('deviceCounts');
  }

  /** @throws CheckpointError when a directory cannot be read or holds what the engine cannot compute */
  async open<R extends Role>(weights: WeightsSpec, role: R, name: string): Promise<EmbeddedHandles[R]> {
    const handles: { readonly [Name in Role]: () => Promise<EmbeddedHandles[Name]> } = {
      frozen: async () => {
        const { model, warnings } = await this.#openFrozen(weights, name);
        return new EmbeddedFrozen(this.#room, model, warnings);
      },
      policy: async () => {
        const { model, warnings } = await this.#openModel(weights, name);
        return new EmbeddedPolicy(this.#room, model, warnings);
      },
      critic: async () => {
        if (weights.type !== 'like') throw new BackendError(`critic '${name}': expected weights like a policy's`);
        const policy = modelOf(this.#room, weights.policy);
        return EmbeddedCritic.open(this.#room, this.#nextId++, policy, weights.directory);
      },
    };
    return handles[role]();
  }

  /**
   * Opens what `openPolicy` opened in a directory, or on it the adapter that `openAdapter` opened. Nothing trains it.
   */
  async openStored(name: string, whole: OpenedDirectory, adapter: StoredAdapter | undefined): Promise<EmbeddedFrozen> {
    const base = await this.#base({ type: 'directory', directory: whole.directory }, whole);
    const model =
      adapter === undefined
        ? await this.#freeze({ name, precision: 'float32' }, base)
        : await this.#adapt({ name, precision: 'float32' }, base, adapter.settings, adapter.state);
    return new EmbeddedFrozen(this.#room, model);
  }

  dispose(): Promise<void> {
    return this.#room.thread.dispose();
  }

  /** Nothing changes a whole model that nothing trains, so that it is a base as it is. */
  async #openFrozen(weights: WeightsSpec, name: string): Promise<Opened> {
    if (weights.type !== 'random' && weights.type !== 'directory') return this.#openModel(weights, name);
    const { precision = 'float32', ...base } = weights;
    return { model: await this.#freeze({ name, precision }, await this.#base(base)) };
  }

  #openModel(weights: WeightsSpec, name: string): Promise<Opened> {
    if (weights.type === 'like') return this.#openLike(name, modelOf(this.#room, weights.policy), weights.directory);
    return this.#openOwn(weights, { name, precision: weights.precision ?? 'float32' });
  }

  async #openOwn(weights: OwnWeights, named: Named): Promise<Opened> {
    switch (weights.type) {
      case 'random': {
        const { config, tokenizer, seed, embeddingDeviation } = weights;
        return { model: await this.#create({ ...named, config, tokenizer }, config, { seed, embeddingDeviation }) };
      }
      case 'directory': {
        const { config, tokenizer, state } = await openPolicy(this.#room.files, weights.directory, {
          optimizer: false,
          chatTemplate: weights.chatTemplate,
        });
        return { model: await this.#create({ ...named, config, tokenizer }, config, state) };
      }
      case 'adapter':
        return {
          model: await this.#adapt(named, await this.#base(weights.base), weights.adapter, { seed: weights.seed }),
        };
      case 'saved-adapter':
        return this.#openSavedAdapter(named, weights.directory, await this.#base(weights.base));
      case 'table':
        throw new BackendError(`'${named.name}': a table of choices is no language model`);
    }
  }

  async #openSavedAdapter(named: Named, directory: string, base: Base): Promise<Opened> {
    const { files } = this.#room;
    const { settings, state } = await openAdapter(files, directory, base.config, { optimizer: false });
    const on = base.directory ?? 'a model from a seed';
    const identified = await saysIdentity(files, directory, await base.hash(), on);
    const model = await this.#adapt(named, base, settings, state);
    if (identified) return { model };
    return { model, warnings: [`${directory} does not say which weights it was trained on; it is put on ${on}`] };
  }

  async #openLike(name: string, policy: EmbeddedModel, directory: string | undefined): Promise<Opened> {
    const { config, tokenizer, precision, adapted } = policy;
    const shape = adapted === undefined ? config : { base: adapted.base.id, adapter: adapted.settings };
    const first =
      directory === undefined
        ? { like: policy.id }
        : await openState(this.#room, { ...policy, name }, directory, { optimizer: false });
    return { model: await this.#create({ name, config, tokenizer, precision, adapted }, shape, first) };
  }

  #adapt(
    named: Named,
    base: Base,
    settings: AdapterSettings,
    first: RandomStart | StoredState,
  ): Promise<EmbeddedModel> {
    const { id, config, tokenizer } = base;
    const about = { ...named, config, tokenizer, adapted: { base, settings } };
    return this.#create(about, { base: id, adapter: settings }, first);
  }

  #freeze(named: Named, { id, config, tokenizer }: Base): Promise<EmbeddedModel> {
    return this.#create({ ...named, config, tokenizer }, { base: id }, undefined);
  }

  async #create(
    about: Omit<EmbeddedModel, 'id' | 'parameters' | 'adapted'> & Partial<Pick<EmbeddedModel, 'adapted'>>,
    shape: PolicyShape,
    first: RandomStart | { readonly like: number } | StoredState | undefined,
  ): Promise<EmbeddedModel> {
    const { thread } = this.#room;
    const id = this.#nextId++;
    const { name, precision } = about;
    if (first === undefined || !('tensors' in first)) {
      const parameters = await thread.call('createPolicy', id, { name, shape, precision }, first);
      return { adapted: undefined, ...about, id, parameters };
    }
    const parameters = await thread.call('createPolicy', id, { name, shape, precision });
    try {
      await fillState(this.#room, { kind: 'policy', id }, first);
    } catch (error) {
      await thread.call('dropPolicy', id);
      throw error;
    }
    return { adapted: undefined, ...about, id, parameters };
  }

  /** The base of this description: read or drawn when the first model asks for it. */
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
    const { thread, files } = this.#room;
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
    await thread.call('createBase', id, config, matrixKind(state));
    await fillState(this.#room, { kind: 'base', id }, state);
    return { id, config, tokenizer, directory, hash };
  }
}

/** The handles of this engine, which know more of a model than the contract asks. */
interface EmbeddedHandles extends Handles {
  readonly frozen: EmbeddedFrozen;
  readonly policy: EmbeddedPolicy;
}

/**
 * Matrices that a file has in bfloat16 stay so where nothing trains them: widening would be exact, and take twice the
 * room.
 */
function matrixKind({ tensors }: StoredState): MatrixKind {
  return tensors.every(({ shape, dtype }) => shape.length < 2 || dtype === 'BF16') ? 'bfloat16' : 'float32';
}
