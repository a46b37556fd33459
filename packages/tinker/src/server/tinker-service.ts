/** Sessions, models and requests: the Tinker protocol without its HTTP. */
import { randomInt, randomUUID } from 'node:crypto';
import type { EmbeddedBackend, EmbeddedPolicy } from '@drmas/engine/embedded';
import { CheckpointError, DialectError, NonFiniteError, suggestion } from '@drmas/engine/errors';
import type { Files } from '@drmas/engine/host';
import type { z } from 'zod';
import type {
  createModelBody,
  loadBody,
  optimStepBody,
  PassInput,
  SampleBody,
  samplingSessionBody,
  saveBody,
} from './bodies.js';
import { type AdapterBytes, adapterBytes, ByteBudget } from './memory-budget.js';
import { drawsOf, type SampledBase, type SampleOutput, Samplers } from './samplers.js';
import { adapterOf, describedModel, type PassOutput, ServedModel } from './served-model.js';
import { Sessions } from './sessions.js';
import { refused, tokenPass } from './token-pass.js';
import { type ModelDescription, type SavePurpose, WeightsStore } from './weights-store.js';

export interface TinkerServiceOptions {
  readonly backend: EmbeddedBackend;
  readonly files: Files;
  /** Directories of the base models, by the names that clients use. */
  readonly bases: ReadonlyMap<string, string>;
  readonly store: string;
  readonly base: SampledBase;
  readonly mostModels: number;
  /** Bytes for adapters and sampling sessions. */
  readonly memory: number;
  /** Bytes of disk for saved weights. */
  readonly disk: number;
  /** Seconds without a heartbeat after which a session has ended. */
  readonly idleSeconds: number;
}

export class TinkerService {
  readonly store: WeightsStore;
  readonly #options: TinkerServiceOptions;
  readonly samplers: Samplers;
  readonly #memory: ByteBudget;
  readonly sessions: Sessions;
  readonly #models = new Map<string, ServedModel>();
  /** Includes models that are being created. A repeated request for such a model gets the same one. */
  readonly #making = new Map<string, { readonly request: string; readonly model: Promise<ServedModel> }>();

  constructor(options: TinkerServiceOptions) {
    this.#options = options;
    this.store = new WeightsStore(options.files, options.store, options.disk);
    this.#memory = new ByteBudget(options.memory, { name: 'memory', flag: '--memory' });
    this.samplers = new Samplers(options.backend, this.#memory);
    this.sessions = new Sessions(options.idleSeconds, (ended) => {
      this.samplers.end(ended);
      for (const { id, session } of this.#models.values()) if (session === ended) void this.unload(id).catch(() => {});
    });
  }

  /** The served models, as the protocol lists them. */
  baseModels(): object[] {
    return Array.from(this.#options.bases.keys(), (model_name) => ({ model_name, trainable: true, sampleable: true }));
  }

  /** @throws DialectError 404 for a model that does not exist (any more) */
  model(id: string): ServedModel {
    const model = this.#models.get(id);
    if (model === undefined) throw new DialectError(404, 'unknown_model', 'Model not found');
    this.sessions.hear(model.session);
    return model;
  }

  /** Checks a request for a model. Returns the work. @throws DialectError for a model that cannot be made */
  createModel(body: z.output<typeof createModelBody>): () => Promise<ServedModel> {
    this.sessions.heartbeat(body.session_id);
    const about = describedModel(body, this.#options.base.config);
    const request = JSON.stringify([about, body.lora_config.seed]);
    if (this.#present(modelId(body), request) === undefined) {
      this.#requirePlace(about);
      this.#memory.require(this.#bytesOf(about).trained, describe(about));
    }
    return () => this.#make(body, { about, request, seed: body.lora_config.seed ?? randomInt(2 ** 31) });
  }

  /** The model that an equal request has made, or makes. @throws DialectError 409 if another request made it */
  #present(id: string, request: string): ServedModel | Promise<ServedModel> | undefined {
    const [made, making] = [this.#models.get(id), this.#making.get(id)];
    const earlier = made?.request ?? making?.request;
    if (earlier !== undefined && earlier !== request)
      throw new DialectError(409, 'reused', 'model_seq_id was reused: the session has another model with this number');
    return made ?? making?.model;
  }

  #requirePlace({ baseModel }: ModelDescription): void {
    this.#base(baseModel);
    const { mostModels } = this.#options;
    if (this.#models.size + this.#making.size >= mostModels)
      throw refused(`there are already ${mostModels} models, the limit of this server (--max-adapters)`);
  }

  #bytesOf(about: ModelDescription): AdapterBytes {
    return adapterBytes(this.#options.base.config, adapterOf(about));
  }

  /** The model of a session by its number there. @throws DialectError as `createModel` does */
  async #make(of: NumberedModel, { about, request, seed }: NewModel): Promise<ServedModel> {
    const id = modelId(of);
    const present = this.#present(id, request);
    if (present !== undefined) return present;
    this.#requirePlace(about);
    const release = this.#memory.take(this.#bytesOf(about).trained, describe(about));
    const model = this.#open(id, about, seed)
      .then((policy) => {
        const model = new ServedModel({ id, session: of.session_id, request, about, policy, release });
        this.#models.set(id, model);
        return model;
      })
      .catch((error: unknown) => {
        release();
        throw error;
      })
      .finally(() => this.#making.delete(id));
    this.#making.set(id, { request, model });
    return model;
  }

  async #open(name: string, about: ModelDescription, seed: number): Promise<EmbeddedPolicy> {
    const base = { type: 'directory', directory: this.#base(about.baseModel) } as const;
    return this.#options.backend.open({ type: 'adapter', base, adapter: adapterOf(about), seed }, 'policy', name);
  }

  #base(name: string): string {
    const { bases } = this.#options;
    const directory = bases.get(name);
    if (directory !== undefined) return directory;
    throw refused(`Base model '${name}' is not served${suggestion(name, [...bases.keys()])}`);
  }

  /** Checks a batch. Returns the work. @throws DialectError for a batch that cannot be computed */
  pass(id: string, input: PassInput, backward: boolean): () => Promise<PassOutput> {
    const model = this.model(id);
    const batch = tokenPass(input, this.#options.base.config);
    return () => model.inOrder(() => model.pass(batch, { backward }));
  }

  optimStep({ model_id, adam_params }: z.output<typeof optimStepBody>): Promise<number | undefined> {
    const model = this.model(model_id);
    return model.inOrder(() => model.optimStep(adam_params));
  }

  /**
   * Saves the weights; for training, also the optimiser's state. Returns their path.
   * @throws DialectError 400, before anything is written, if the weights do not fit into the store
   */
  save({ model_id, path }: z.output<typeof saveBody>, purpose: SavePurpose): Promise<string> {
    const model = this.model(model_id);
    const name = path ?? randomUUID();
    const write = async (directory: string) => {
      if (purpose === 'sampler_weights') return model.policy.save(directory);
      await model.policy.save(directory, { optimizer: true }).catch((error: unknown) => {
        // An overflowed moment of the optimiser is lost; the weights are finite and can be saved.
        if (!(error instanceof NonFiniteError)) throw error;
        return model.policy.save(directory);
      });
    };
    return model.inOrder(() => {
      const { weightFiles, trainingFiles } = this.#bytesOf(model.about);
      const bytes = purpose === 'weights' ? trainingFiles : weightFiles;
      return this.store.save({ model: model.id, purpose, name, bytes }, model.about, write);
    });
  }

  /** Removes saved weights, and ends their sampling sessions. @throws DialectError 404 if there are none at the path */
  async remove(path: string): Promise<void> {
    this.samplers.remove(await this.store.remove(path));
  }

  /** A sampling session on the present weights, without writing them to files. */
  snapshot(id: string): Promise<string> {
    const model = this.model(id);
    return model.inOrder(() => this.samplers.snapshot(model, this.#bytesOf(model.about).sampled));
  }

  /** Loads saved weights into a model, or into a new model. */
  async load({ model_id, session_id, model_seq_id, path, optimizer }: z.output<typeof loadBody>): Promise<ServedModel> {
    if (typeof model_id === 'string') {
      const model = this.model(model_id);
      await model.inOrder(async () => {
        const { directory, alpha, ...saved } = await this.store.open(path);
        for (const key of ['baseModel', 'rank', 'attention', 'feedForward'] as const)
          if (saved[key] !== model.about[key])
            throw refused(`the model's ${key} is ${model.about[key]}, but the ${key} of ${path} is ${saved[key]}`);
        const about = { ...model.about, alpha };
        await named(path, directory, () =>
          alpha === model.about.alpha
            ? loadState(model.policy, directory, optimizer)
            : this.#rescale(model, about, (policy) => loadState(policy, directory, optimizer)),
        );
      });
      return model;
    }
    if (typeof session_id !== 'string') throw refused('expected a model_id, or a session_id');
    this.sessions.heartbeat(session_id);
    const saved = await this.store.open(path);
    const request = JSON.stringify([path, optimizer]);
    const model = await this.#make({ session_id, model_seq_id }, { about: saved, request, seed: 0 });
    await model.inOrder(() => named(path, saved.directory, () => model.policy.load(saved.directory, { optimizer })));
    return model;
  }

  /**
   * Clients of the protocol cannot send an alpha, so a model takes the alpha of the weights that it loads. Its own
   * weights stay until the others are loaded.
   */
  async #rescale(
    model: ServedModel,
    about: ModelDescription,
    load: (policy: EmbeddedPolicy) => Promise<void>,
  ): Promise<void> {
    const release = this.#memory.take(this.#bytesOf(about).trained, 'an adapter of another alpha'); // for a while
    try {
      const policy = await this.#open(model.id, about, 0);
      await load(policy).catch(async (error: unknown) => {
        await policy.close();
        throw error;
      });
      const outgrown = model.policy;
      model.policy = policy;
      model.about = about;
      await outgrown.close();
    } finally {
      release();
    }
  }

  async unload(id: string): Promise<void> {
    const model = this.#models.get(id);
    this.#models.delete(id);
    await model?.inOrder(() => model.policy.close().finally(model.release));
  }

  async openSampler(body: z.output<typeof samplingSessionBody>): Promise<string> {
    this.sessions.heartbeat(body.session_id);
    return this.#openSampler(body.session_id, body);
  }

  async #openSampler(
    session: string,
    { base_model, model_path }: Pick<SampleBody, 'base_model' | 'model_path'>,
  ): Promise<string> {
    if (typeof model_path === 'string') {
      const saved = await this.store.open(model_path);
      const { directory, baseModel, key } = saved;
      const base = { type: 'directory', directory: this.#base(baseModel) } as const;
      const about = { base_model: baseModel, model_path };
      const weights = { type: 'saved-adapter', base, directory } as const;
      return this.samplers.open({ session, key, about, weights, bytes: this.#bytesOf(saved).sampled });
    }
    if (typeof base_model !== 'string') throw refused('expected a base_model, or a model_path');
    const directory = this.#base(base_model);
    const weights = { type: 'directory', directory } as const;
    return this.samplers.open({ session, key: directory, about: { base_model }, weights, bytes: 0 });
  }

  /**
   * Checks a request for samples of a session, or of the weights that the request names. Returns the work.
   * @throws DialectError 404 for a session that does not exist, 400 for a request that cannot be sampled
   */
  sample(body: SampleBody): () => Promise<SampleOutput> {
    const { sampling_session_id: session, base_model } = body;
    const draws = drawsOf(body, this.#options.base);
    if (typeof session === 'string') {
      this.samplers.sourceOf(session);
      return () => this.samplers.sample(session, draws);
    }
    if (typeof body.model_path !== 'string') {
      if (typeof base_model !== 'string') throw refused('expected a sampling_session_id, a base_model or a model_path');
      this.#base(base_model);
    }
    return async () => {
      const passing = `passing_${randomUUID()}`;
      try {
        return await this.samplers.sample(await this.#openSampler(passing, body), draws);
      } finally {
        this.samplers.end(passing);
      }
    };
  }
}

/** A model's place in its session. */
interface NumberedModel {
  readonly session_id: string;
  readonly model_seq_id?: number | null | undefined;
}

interface NewModel {
  readonly about: ModelDescription;
  /** A text that only an equal request has. */
  readonly request: string;
  readonly seed: number;
}

/** Newer clients compute it in advance. */
const modelId = ({ session_id, model_seq_id }: NumberedModel) => `${session_id}:train:${model_seq_id ?? randomUUID()}`;

const describe = ({ rank }: ModelDescription) => `an adapter of rank ${rank}`;

async function loadState(policy: EmbeddedPolicy, directory: string, optimizer: boolean): Promise<void> {
  await policy.load(directory, { optimizer });
  if (!optimizer) await policy.resetOptimizer();
}

/** Reads saved weights. Its errors name them by the client's path instead of the server's directory. */
async function named<T>(path: string, directory: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    throw refused(error.message.replaceAll(directory, path));
  }
}
