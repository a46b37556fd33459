/** One case of the referee: its models on the server, and comparisons of the server's numbers. */

import { BackendError } from '@drmas/engine/errors';
import type { z } from 'zod';
import { ProbedModel } from '../probe/probed-model.js';
import { RemoteModel } from '../remote-model.js';
import { gradientNormOf } from '../remote-trainer.js';
import type { ProfileName, ServerProfile } from '../server-profile.js';
import { type PassInput, passAnswer, type ServerLoss, stepAnswer } from '../wire/answers.js';
import { datumOf } from '../wire/datum.js';
import { sendPasses } from '../wire/passes.js';
import type { TinkerClient } from '../wire/tinker-client.js';
import { isKind, TinkerError } from '../wire/tinker-failure.js';

export const AREAS = [
  'service',
  'log-probs',
  'losses',
  'optimiser',
  'weights',
  'sampling',
  'requests',
  'errors',
] as const;

export interface RefereeCase {
  readonly name: string;
  readonly area: (typeof AREAS)[number];
  /** All training needs it. */
  readonly core?: true;
  /** Some servers keep the damage after it, also for other models. */
  readonly hostile?: true;
  /** A sentence: the behaviour that passes. */
  readonly about: string;
  /** The difference that a profile declares, in words. */
  readonly known?: (profile: ServerProfile) => string | undefined;
  /** @throws Differs, NotOffered or TinkerError if the server does not behave as `about` says */
  run(bench: RefereeBench): Promise<void>;
}

/** The server does something else. The message has the numbers. */
export class Differs extends BackendError {}
/** The server makes no further model, so the case could not begin. */
export class NoModel extends BackendError {}
/** The server lacks a request or a number that the case needs. */
export class NotOffered extends BackendError {}

export interface BenchOptions {
  readonly client: TinkerClient;
  readonly baseModel: string;
  readonly profile: ServerProfile;
  /** The largest difference of two log-probs that should be equal. Norms may differ by ten times this fraction. */
  readonly tolerance: number;
  /** Time in which a server refuses a wrong request. */
  readonly patienceMs: number;
  /** Log-probs of the base model that another program computed, rows [T] with 0 for the first token. */
  readonly reference?: ((sequences: readonly Int32Array[]) => Promise<readonly Float32Array[]>) | undefined;
  /** An HTTP request with any body. Returns the status. */
  readonly raw: (path: string, body: string, signal?: AbortSignal) => Promise<number>;
}

export const RANK = 4;
export const ADAM = { learning_rate: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-8 } as const;

export class RefereeBench {
  readonly client: TinkerClient;
  readonly baseModel: string;
  readonly profile: ServerProfile;
  readonly tolerance: number;
  readonly reference: BenchOptions['reference'];
  readonly raw: BenchOptions['raw'];
  /** The compared numbers, as texts. */
  readonly numbers: string[] = [];
  readonly #patienceMs: number;
  readonly #models: RemoteModel[] = [];

  constructor({ client, baseModel, profile, tolerance, patienceMs, reference, raw }: BenchOptions) {
    this.client = client;
    this.baseModel = baseModel;
    this.profile = profile;
    this.tolerance = tolerance;
    this.reference = reference;
    this.raw = raw;
    this.#patienceMs = patienceMs;
  }

  /** A new model: an adapter that does nothing yet. */
  async model(seed = 1): Promise<ProbedModel> {
    const { client, baseModel } = this;
    const spec = { baseModel, rank: RANK, seed, attention: true, feedForward: true };
    const model = await RemoteModel.create({ client, name: 'referee', spec }).catch((error: unknown) => {
      throw isKind(error, 'refused', 'failed') ? new NoModel(error.message) : error;
    });
    this.#models.push(model);
    return new ProbedModel(client, model, this.profile.forward);
  }

  /** Gives the models' places back, unless the client is closed. */
  async close(): Promise<void> {
    if (this.client.closed) return;
    for (const model of this.#models) await model.unload();
  }

  /** Sends batches and an update. Returns the norm of the gradient, if the server reports it. */
  async update({ model }: ProbedModel, batches: readonly PassInput[], adam: object = {}): Promise<number | undefined> {
    const passes = await sendPasses(model, batches);
    const adam_params = { ...ADAM, ...adam };
    const step = await model.submit('optim_step', { adam_params });
    for (const pass of passes) await pass.result(passAnswer);
    return gradientNormOf((await step.result(stepAnswer)).metrics);
  }

  /** Updates a model several times with the cross-entropy of all targets of a sequence. */
  async train(probed: ProbedModel, tokens: Int32Array, steps: number): Promise<void> {
    for (let i = 0; i < steps; i++) await this.update(probed, [crossEntropy(tokens)]);
  }

  async score(probed: ProbedModel, tokens: Int32Array): Promise<Float32Array> {
    return (await probed.score(tokens))[0] as Float32Array;
  }

  /** @throws Differs unless a number is the expected one, up to `tolerance` */
  near(what: string, got: number, expected: number, tolerance = this.tolerance): void {
    const text = `${what} ${digits(got)}`;
    if (!(Math.abs(got - expected) <= tolerance)) throw new Differs(`${text}, expected ${digits(expected)}`);
    this.numbers.push(text);
  }

  /** As `near`, relative to the expected number. */
  nearly(what: string, got: number, expected: number): void {
    const share = Math.min(0.25, Math.max(1e-4, 10 * this.tolerance));
    this.near(what, got, expected, Math.max(share * Math.abs(expected), this.tolerance));
  }

  /** @throws Differs unless two rows of log-probs are equal */
  same(what: string, got: ArrayLike<number | null>, expected: ArrayLike<number | null>): void {
    this.near(`largest difference ${what}`, distance(got, expected), 0);
  }

  /** @throws Differs unless two rows of log-probs differ */
  changed(what: string, got: ArrayLike<number>, before: ArrayLike<number>): void {
    const by = distance(got, before);
    this.holds(`${what} by ${digits(by)}`, by > 4 * this.tolerance);
  }

  /** @throws Differs unless the fact holds */
  holds(fact: string, is: boolean): void {
    if (!is) throw new Differs(`not so: ${fact}`);
    this.numbers.push(fact);
  }

  /** @throws Differs unless the server answers with an error, soon */
  async refuses(what: string, request: () => Promise<unknown>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), this.#patienceMs);
    });
    try {
      const outcome = await Promise.race([request(), late]);
      const answer =
        outcome === 'late' ? `no answer to ${what} within ${this.#patienceMs / 1000} s` : `${what} accepted`;
      throw new Differs(`${answer}, expected an error`);
    } catch (error) {
      if (!(error instanceof TinkerError)) throw error;
      const { kind, status } = error;
      const refused = kind === 'refused' || kind === 'lost' || (kind === 'failed' && status === 200);
      if (!refused) throw error;
      this.numbers.push(error.message);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Submits any request and waits for its result. */
  async finish<S extends z.ZodType>(path: string, body: object, schema: S): Promise<z.output<S>> {
    return (await this.client.submit(path, { ...body, type: path }, { repeatable: false })).result(schema);
  }
}

const digits = (value: number) => Number(value.toPrecision(6));

/** The largest difference of two rows; infinite if one has another length. */
function distance(a: ArrayLike<number | null>, b: ArrayLike<number | null>): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  let most = 0;
  for (let t = 0; t < a.length; t++) most = Math.max(most, Math.abs((a[t] ?? 0) - (b[t] ?? 0)));
  return most;
}

/** A row [T] with a value at certain tokens, 0 elsewhere. */
export const rowWith = (tokens: Int32Array, values: Readonly<Record<number, number>>) =>
  Float32Array.from(tokens, (_, t) => values[t] ?? 0);

export const lossOn = (
  tokens: Int32Array,
  loss_fn: ServerLoss,
  inputs: Readonly<Record<string, ArrayLike<number>>>,
  loss_fn_config?: Readonly<Record<string, number>>,
): PassInput => ({ data: [datumOf(tokens, inputs)], loss_fn, ...(loss_fn_config && { loss_fn_config }) });

/** A batch of one sequence whose targets have the same weight. */
export const crossEntropy = (tokens: Int32Array, weight = 1) =>
  lossOn(tokens, 'cross_entropy', { weights: new Float32Array(tokens.length).fill(weight) });

export const define =
  (area: RefereeCase['area'], core?: 'core') =>
  (name: string, about: string, run: RefereeCase['run'], known?: RefereeCase['known']): RefereeCase => ({
    name,
    area,
    about,
    run,
    ...(core && { core: true }),
    ...(known && { known }),
  });

/** A difference that the facts of a profile do not have, of servers that are known to have it. */
export const differenceOf =
  (text: string, ...names: readonly ProfileName[]) =>
  ({ name }: ServerProfile) =>
    names.some((one) => one === name) ? text : undefined;
