/** Sessions, models and requests: the Tinker protocol without its HTTP. */
import { randomInt, randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { DialectError, NonFiniteError, suggestion } from '../../base/errors.js';
import type { Files } from '../../base/host.js';
import type { EmbeddedBackend, EmbeddedPolicy } from '../../engine/backends.js';
import { type AdapterSettings, PROJECTIONS } from '../../engine/contract.js';
import type {
  createModelBody,
  loadBody,
  optimStepBody,
  PassInput,
  SampleBody,
  samplingSessionBody,
  saveBody,
} from './bodies.js';
import { type SampleOutput, type SamplerSource, Samplers } from './samplers.js';
import { type ModelDescription, type PassOutput, ServedModel } from './served-model.js';
import { refused } from './token-pass.js';
import { type Purpose, WeightsStore } from './weights-store.js';

/** The alpha that other servers of the protocol give adapters. */
const ALPHA = 32;

const ATTENTION = PROJECTIONS.slice(0, 4);
const FEED_FORWARD = PROJECTIONS.slice(4);

export interface TinkerServiceOptions {
  readonly backend: EmbeddedBackend;
  readonly files: Files;
  /** Directories of the base models, by the names that clients use. */
  readonly bases: ReadonlyMap<string, string>;
  /** The directory for weights that clients save. */
  readonly store: string;
  /** The most models. */
  readonly mostModels: number;
  /** Seconds without a heartbeat after which a session has ended. */
  readonly idleSeconds: number;
}

export class TinkerService {
  readonly store: WeightsStore;
  readonly #options: TinkerServiceOptions;
  readonly #samplers: Samplers;
  /** The time of the last heartbeat or request, on the clock of `performance`. */
  readonly #sessions = new Map<string, number>();
  readonly #models = new Map<string, ServedModel>();
  /** Includes models that are being created. A repeated request for such a model gets the same one. */
  readonly #making = new Map<string, Promise<ServedModel>>();
  readonly #sweep: NodeJS.Timeout;

  constructor(options: TinkerServiceOptions) {
    this.#options = options;
    this.store = new WeightsStore(options.files, options.store);
    this.#samplers = new Samplers(options.backend);
    this.#sweep = setInterval(() => this.#endIdle(), 250 * options.idleSeconds).unref();
  }

  get models(): number {
    return this.#models.size;
  }

  /** The served models, as the protocol lists them. */
  baseModels(): object[] {
    return Array.from(this.#options.bases.keys(), (model_name) => ({ model_name, trainable: true, sampleable: true }));
  }

  close(): void {
    clearInterval(this.#sweep);
  }

  openSession(): string {
    const id = `session_${randomUUID()}`;
    this.#sessions.set(id, performance.now());
    return id;
  }

  /** @throws DialectError 404 for a session that has ended */
  heartbeat(session: string): void {
    if (!this.#sessions.has(session)) throw new DialectError(404, 'unknown_session', 'Session not found');
    this.#sessions.set(session, performance.now());
  }

  /** @throws DialectError 404 for a model that does not exist (any more) */
  model(id: string): ServedModel {
    const model = this.#models.get(id);
    if (model === undefined) throw new DialectError(404, 'unknown_model', 'Model not found');
    this.#sessions.set(model.session, performance.now());
    return model;
  }

  async createModel(body: z.output<typeof createModelBody>): Promise<ServedModel> {
    this.heartbeat(body.session_id);
    const { rank, seed, alpha, train_attn, train_mlp } = body.lora_config;
    const about = {
      baseModel: body.base_model,
      rank,
      alpha: alpha ?? ALPHA,
      attention: train_attn,
      feedForward: train_mlp,
    };
    return this.#make(body, about, seed ?? randomInt(2 ** 31));
  }

  /** The model of a session by its number there: newer clients compute its id in advance. */
  async #make(of: NumberedModel, about: ModelDescription, seed: number): Promise<ServedModel> {
    const { mostModels } = this.#options;
    const id = `${of.session_id}:train:${of.model_seq_id ?? randomUUID()}`;
    const present = this.#models.get(id) ?? this.#making.get(id);
    if (present !== undefined) return present;
    this.#base(about.baseModel);
    if (this.#models.size + this.#making.size >= mostModels)
      throw refused(`there are already ${mostModels} models, the limit of this server (--max-adapters)`);
    const making = this.#open(id, about, seed)
      .then((policy) => {
        const model = new ServedModel(id, of.session_id, about, policy);
        this.#models.set(id, model);
        return model;
      })
      .finally(() => this.#making.delete(id));
    this.#making.set(id, making);
    return making;
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

  pass(id: string, input: PassInput, backward: boolean): Promise<PassOutput> {
    const model = this.model(id);
    return model.inOrder(() => model.pass(input, { backward }));
  }

  optimStep({ model_id, adam_params }: z.output<typeof optimStepBody>): Promise<number | undefined> {
    const model = this.model(model_id);
    return model.inOrder(() => model.optimStep(adam_params));
  }

  /** Saves the weights; for training, also the optimiser's state. Returns their path. */
  save({ model_id, path }: z.output<typeof saveBody>, purpose: Purpose): Promise<string> {
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
    return model.inOrder(() => this.store.save(model.id, purpose, name, model.about, write));
  }

  /** A sampling session on the present weights, without writing them to files. */
  snapshot(id: string): Promise<string> {
    const model = this.model(id);
    return model.inOrder(() => this.#samplers.snapshot(model));
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
        if (alpha !== model.about.alpha) await this.#rescale(model, alpha);
        await model.policy.load(directory, { optimizer });
        if (!optimizer) await model.policy.resetOptimizer();
      });
      return model;
    }
    if (typeof session_id !== 'string') throw refused('expected a model_id, or a session_id');
    this.heartbeat(session_id);
    const saved = await this.store.open(path);
    const model = await this.#make({ session_id, model_seq_id }, saved, 0);
    await model.inOrder(() => model.policy.load(saved.directory, { optimizer }));
    return model;
  }

  /** Clients of the protocol cannot send an alpha, so a model takes the alpha of the weights that it loads. */
  async #rescale(model: ServedModel, alpha: number): Promise<void> {
    const outgrown = model.policy;
    const about = { ...model.about, alpha };
    model.policy = await this.#open(model.id, about, 0);
    model.about = about;
    await outgrown.close();
  }

  async unload(id: string): Promise<void> {
    const model = this.#models.get(id);
    this.#models.delete(id);
    await model?.inOrder(() => model.policy.close());
  }

  async openSampler(body: z.output<typeof samplingSessionBody>): Promise<string> {
    this.heartbeat(body.session_id);
    return this.#openSampler(body.session_id, body);
  }

  async #openSampler(
    session: string,
    { base_model, model_path }: Pick<SampleBody, 'base_model' | 'model_path'>,
  ): Promise<string> {
    if (typeof model_path === 'string') {
      const { directory, baseModel } = await this.store.open(model_path);
      const base = { type: 'directory', directory: this.#base(baseModel) } as const;
      const about = { base_model: baseModel, model_path };
      return this.#samplers.open(session, directory, about, { type: 'saved-adapter', base, directory });
    }
    if (typeof base_model !== 'string') throw refused('expected a base_model, or a model_path');
    const directory = this.#base(base_model);
    return this.#samplers.open(session, directory, { base_model }, { type: 'directory', directory });
  }

  /** The weights of a sampling session. */
  samplerSource(id: string): SamplerSource {
    return this.#samplers.sourceOf(id);
  }

  /** Draws samples from a session, or from the weights that the request names. */
  async sample(body: SampleBody): Promise<SampleOutput> {
    if (typeof body.sampling_session_id === 'string') return this.#samplers.sample(body.sampling_session_id, body);
    const passing = `passing_${randomUUID()}`;
    try {
      return await this.#samplers.sample(await this.#openSampler(passing, body), body);
    } finally {
      this.#samplers.end(passing);
    }
  }

  #endIdle(): void {
    const { idleSeconds } = this.#options;
    for (const [session, heard] of this.#sessions) {
      if (performance.now() - heard < 1000 * idleSeconds) continue;
      this.#sessions.delete(session);
      this.#samplers.end(session);
      for (const { id, session: of } of this.#models.values()) if (of === session) void this.unload(id).catch(() => {});
    }
  }
}

/** A model's place in its session. */
interface NumberedModel {
  readonly session_id: string;
  readonly model_seq_id?: number | null | undefined;
}

/** @throws DialectError for an adapter without targets */
function adapterOf({ rank, alpha, attention, feedForward }: ModelDescription): AdapterSettings {
  const targets = [...(attention ? ATTENTION : []), ...(feedForward ? FEED_FORWARD : [])];
  if (targets.length === 0) throw refused('expected an adapter of train_attn, of train_mlp or of both');
  return { rank, alpha, targets };
}
