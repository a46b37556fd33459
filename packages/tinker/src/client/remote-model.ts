import type { z } from 'zod';
import { doneAnswer, modelAnswer, savedAnswer } from './wire/answers.js';
import type { Repetition, Submitted, TinkerClient } from './wire/tinker-client.js';
import { isKind, TinkerError } from './wire/tinker-failure.js';

export interface RemoteModelSpec {
  /** The server's name of the model that the adapter adapts. */
  readonly baseModel: string;
  readonly rank: number;
  /** The protocol has no field for alpha: only extended servers receive it, and other servers choose their own. */
  readonly alpha?: number;
  readonly seed: number;
  readonly attention: boolean;
  readonly feedForward: boolean;
}

export interface SavedWeights {
  /** The server's name of the weights: `tinker://...` on most. */
  readonly path: string;
  /** The number of updates in the weights. */
  readonly updates: number;
}

export interface RemoteModelOptions {
  readonly client: TinkerClient;
  readonly name: string;
  readonly spec: RemoteModelSpec;
  /** The server runs a request once, even if it is sent again with the same number. */
  readonly idempotent?: boolean;
  /** The server accepts fields that the protocol lacks. */
  readonly extended?: boolean;
  /** Receives a message if the model was lost, with the outcome of its recovery. */
  readonly onRecovery?: (message: string) => void;
}

/** The most recoveries of a lost model in a row, without an update in between. */
const MOST_RECOVERIES = 3;

/**
 * One LoRA model on a server. Its requests reach the server one after the other, in the order in which they were made,
 * while earlier ones are still computed. If the server has lost the model, the client makes it again from the weights
 * last saved; `generation` counts how often.
 */
export class RemoteModel {
  readonly name: string;
  generation = 0;
  updates = 0;
  saved: SavedWeights | undefined;
  /** The adapter's alpha on the server, if the server reports it. */
  alpha: number | undefined;
  readonly #options: RemoteModelOptions;
  /** Whether `saved` is loaded with its optimiser's state. */
  #savedOptimizer = true;
  #id = '';
  #session = '';
  #sequence = 0;
  #tail: Promise<unknown> = Promise.resolve();
  #recovering: Promise<void> | undefined;
  #recoveries = 0;

  private constructor(options: RemoteModelOptions) {
    this.name = options.name;
    this.#options = options;
  }

  static async create(options: RemoteModelOptions): Promise<RemoteModel> {
    const model = new RemoteModel(options);
    await model.#create();
    return model;
  }

  get id(): string {
    return this.#id;
  }

  /** The number of a request that another class sends. */
  takeNumber(): number {
    return ++this.#sequence;
  }

  /** Runs `work` after earlier requests were sent, and before later ones are. */
  inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(work);
    this.#tail = done.catch(() => {});
    return done;
  }

  /**
   * Sends a request of this model. The caller has its turn.
   * @param repeatable A second run does no harm. Other requests are sent again only if the server knows their numbers.
   * @throws TinkerError `fate-unknown` when the request may have arrived and cannot be sent again
   */
  async submit(path: string, body: object, { repeatable = true }: Repetition = {}): Promise<Submitted> {
    const { client, idempotent = false } = this.#options;
    const request = { model_id: this.#id, ...body, seq_id: ++this.#sequence, type: path };
    try {
      return await client.submit(path, request, { repeatable: repeatable || idempotent });
    } catch (error) {
      if (repeatable || idempotent || !isKind(error, 'unreachable')) throw error;
      throw new TinkerError(
        'fate-unknown',
        `${path} of policy '${this.name}' may have arrived, and this server would run it twice: ${error.message}`,
      );
    }
  }

  /** Sends a repeatable request and awaits its result. The caller has its turn. */
  async finish<S extends z.ZodType>(path: string, body: object, schema: S): Promise<z.output<S>> {
    return (await this.submit(path, body)).result(schema);
  }

  /**
   * Sends requests in their turn, then awaits their results. If the server has lost the model, makes the model again
   * and sends the requests again at once, because later requests may wait for them.
   * @param waiting The caller has the turn and waits for the results
   */
  async request<S, T>(
    send: () => Promise<S>,
    finish: (sent: S) => Promise<T>,
    { waiting = false }: { readonly waiting?: boolean } = {},
  ): Promise<T> {
    for (let first = !waiting; ; first = false) {
      const { generation } = this;
      try {
        return await finish(await (first ? this.inOrder(send) : send()));
      } catch (error) {
        if (!isKind(error, 'lost', 'late')) throw error;
        await this.recover(generation, error);
      }
    }
  }

  /**
   * Makes the model of `generation` again from the weights last saved, unless that was done already.
   * @throws TinkerError `lost` when nothing was saved since its first update, or when the new model is lost too
   */
  recover(generation: number, reason: TinkerError): Promise<void> {
    if (generation !== this.generation) return Promise.resolve();
    this.#recovering ??= this.#recover(reason).finally(() => {
      this.#recovering = undefined;
    });
    return this.#recovering;
  }

  /** An update has arrived, so the server works. */
  updated(): void {
    this.updates++;
    this.#recoveries = 0;
  }

  async #recover(reason: TinkerError): Promise<void> {
    const { client, onRecovery } = this.#options;
    const { saved, updates, name } = this;
    if (client.closed) throw reason;
    const fail = (message: string) => new TinkerError('failed', `policy '${name}': ${message} (${reason.message})`);
    if (saved === undefined && updates > 0)
      throw fail(`the server lost it, and nothing was saved since its first update`);
    if (++this.#recoveries > MOST_RECOVERIES)
      throw fail(`made again ${MOST_RECOVERIES} times in a row, and lost again`);
    const expired = this.#session;
    await this.unload();
    try {
      await this.#create(expired);
      if (saved !== undefined) await this.#load(saved.path, this.#savedOptimizer);
    } catch (error) {
      if (!isKind(error, 'lost', 'refused', 'failed')) throw error;
      throw fail(`it could not be made again${saved ? ` from ${saved.path}` : ''}: ${error.message}`);
    }
    this.updates = saved?.updates ?? 0;
    this.generation++;
    const since = updates - this.updates;
    onRecovery?.(
      `policy '${name}' was made again from ${saved === undefined ? 'its first weights' : `the weights saved after update ${saved.updates}`}` +
        `${since > 0 ? `; ${since} update${since === 1 ? ' is' : 's are'} lost` : ''}: ${reason.message}`,
    );
  }

  /** Saves the weights with the optimiser's state, after all earlier requests for updates. */
  save(): Promise<SavedWeights> {
    let label = '';
    let updates = 0;
    return this.request(
      () => {
        label = `drmas-${this.name.replaceAll(/[^A-Za-z0-9_-]/g, '-')}-${crypto.randomUUID().slice(0, 8)}`;
        updates = this.updates;
        return this.submit('save_weights', { path: label });
      },
      async (submitted) => {
        const { path } = await submitted.result(savedAnswer);
        return this.#remember({ path: path ?? label, updates }, true);
      },
    );
  }

  /** Deletes weights of an earlier save on the server, unless a lost model would be made again from them. */
  async delete({ path }: SavedWeights): Promise<void> {
    await this.#recovering?.catch(() => {}); // it may be loading them
    if (path !== this.saved?.path) await this.#options.client.deleteWeights(path);
  }

  #remember(saved: SavedWeights, optimizer: boolean): SavedWeights {
    this.saved = saved;
    this.#savedOptimizer = optimizer;
    return saved;
  }

  /**
   * Replaces the model's weights by saved ones. Some servers load weights only into new models, so it makes a new one.
   */
  async replace(saved: SavedWeights, { optimizer }: { readonly optimizer: boolean }): Promise<void> {
    await this.inOrder(async () => {
      if (this.#sequence > 0) {
        await this.unload();
        await this.#create();
      }
      await this.#load(saved.path, optimizer);
    });
    this.generation++;
    this.updates = saved.updates;
    this.#remember(saved, optimizer);
  }

  /** Frees the model's place on the server. A lost model has none. */
  async unload(): Promise<void> {
    const { client } = this.#options;
    try {
      await client.finish('unload_model', { model_id: this.#id, type: 'unload_model' }, doneAnswer);
    } catch (error) {
      if (!(error instanceof TinkerError)) throw error;
    }
  }

  async #create(unlike?: string): Promise<void> {
    const { client, spec, extended } = this.#options;
    const { baseModel, rank, alpha, seed, attention, feedForward } = spec;
    this.#session = await client.session(unlike);
    const targets = { train_attn: attention, train_mlp: feedForward, train_unembed: false };
    const submitted = await client.submit('create_model', {
      session_id: this.#session,
      model_seq_id: client.nextModel(),
      base_model: baseModel,
      lora_config: { rank, seed, ...targets, ...(extended && { alpha }) },
      type: 'create_model',
    });
    const { model_id, lora_config } = await submitted.result(modelAnswer);
    this.alpha = lora_config?.alpha ?? undefined;
    this.#id = model_id ?? submitted.modelId ?? submitted.id;
    this.#sequence = 0;
  }

  async #load(path: string, optimizer: boolean): Promise<void> {
    await this.finish('load_weights', { path, optimizer }, doneAnswer);
  }
}
