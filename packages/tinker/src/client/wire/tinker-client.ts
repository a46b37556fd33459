import { setTimeout as sleep } from 'node:timers/promises';
import { waitMs } from '@drmas/engine/host';
import type { z } from 'zod';
import { capabilitiesAnswer, futureAnswer, heartbeatAnswer, sessionAnswer } from './answers.js';
import { Http, type HttpOptions, isServerError, type Repetition, read, SERVER_ERRORS } from './http.js';
import { failureOf, isKind, TinkerError } from './tinker-failure.js';

/** The version of the protocol, as its SDK numbers it: the last version whose bodies are all JSON. */
const PROTOCOL_VERSION = '0.24.1';

/** Model and name of weights with the optimiser's state. */
const SAVED_PATH = /^tinker:\/\/([\w:-]+)\/weights\/([\w-][\w.-]*)$/;

export type { Repetition } from './http.js';

export interface Submitted {
  readonly id: string;
  /** The id of a new model, if the server reports it at once. */
  readonly modelId: string | undefined;
  result<S extends z.ZodType>(schema: S): Promise<z.output<S>>;
}

/** A connection to a server: it submits requests, awaits their results, and keeps sessions alive. */
export class TinkerClient {
  readonly #http: Http;
  readonly #close = new AbortController();
  /** Oldest first; new models belong to the newest. All are kept alive, because older ones have models. */
  readonly #sessions: string[] = [];
  #opening: Promise<string> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #models = 0;
  #samplers = 0;

  constructor(options: Omit<HttpOptions, 'signal'>) {
    this.#http = new Http({ ...options, signal: this.#close.signal });
  }

  get closed(): boolean {
    return this.#close.signal.aborted;
  }

  nextModel(): number {
    return this.#models++;
  }

  nextSampler(): number {
    return this.#samplers++;
  }

  /** Names of the models that the server trains, and whether the server is drmas's own. */
  async baseModels(): Promise<{ readonly names: string[]; readonly isDrmas: boolean }> {
    const { supported_models, drmas } = await this.ask('get_server_capabilities', undefined, capabilitiesAnswer);
    return { names: supported_models.map(({ model_name }) => model_name), isDrmas: drmas !== undefined };
  }

  /** The session of new models; another one than `unlike` if that is given. */
  async session(unlike?: string): Promise<string> {
    const newest = this.#sessions.at(-1);
    if (newest !== undefined && newest !== unlike) return newest;
    this.#opening ??= this.#openSession().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #openSession(): Promise<string> {
    const body = { tags: [], user_metadata: {}, sdk_version: PROTOCOL_VERSION, type: 'create_session' };
    const { session_id } = await this.ask('create_session', body, sessionAnswer);
    if (!this.#sessions.includes(session_id)) this.#sessions.push(session_id);
    this.#heartbeat ??= setInterval(() => void this.#beat(), waitMs(this.#http.timing.heartbeat * 1000)).unref();
    return session_id;
  }

  /** Removes a session that the server no longer knows. Its models count as lost at their next request. */
  async #beat(): Promise<void> {
    for (const session_id of [...this.#sessions]) {
      try {
        await this.#http
          .once('session_heartbeat', { session_id, type: 'session_heartbeat' })
          .then(heartbeatAnswer.parse);
      } catch (error) {
        const at = this.#sessions.indexOf(session_id);
        if (isKind(error, 'lost') && at >= 0) this.#sessions.splice(at, 1);
      }
    }
  }

  async submit(path: string, body: unknown, repetition?: Repetition): Promise<Submitted> {
    const { request_id, model_id } = await this.#http.ask(path, body, futureAnswer, repetition);
    return {
      id: request_id,
      modelId: model_id ?? undefined,
      result: (schema) => this.result(request_id, path, schema),
    };
  }

  /** Submits a repeatable request and awaits its result. */
  async finish<S extends z.ZodType>(path: string, body: unknown, schema: S): Promise<z.output<S>> {
    return (await this.submit(path, body)).result(schema);
  }

  result<S extends z.ZodType>(id: string, name: string, schema: S): Promise<z.output<S>> {
    return retrieve(this.#http, { id, name }, schema);
  }

  /** A request with an immediate answer. */
  ask<S extends z.ZodType>(path: string, body: unknown, schema: S): Promise<z.output<S>> {
    return this.#http.ask(path, body, schema);
  }

  /** Deletes saved weights. Weights that the server keeps all the same do no harm, so its refusal is no error. */
  async deleteWeights(path: string): Promise<void> {
    const [, model, name] = SAVED_PATH.exec(path) ?? [];
    if (model === undefined) return;
    await this.#http
      .delete(`training_runs/${encodeURIComponent(model)}/checkpoints/weights/${name}`)
      .catch((error: unknown) => {
        if (!(error instanceof TinkerError)) throw error;
      });
  }

  close(): void {
    clearInterval(this.#heartbeat);
    this.#close.abort();
  }
}

/** Servers hold a poll until there is a result. After a reply without a result, the next poll waits this long. */
const SHORTEST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 5000;

/**
 * Waits for the result of an accepted request. Every poll has its own deadline, and all polls together have the total
 * one. After a dropped connection or a restart, the next poll follows.
 * @throws TinkerError `late` after the total deadline, `lost` when the server does not know the request (any more)
 */
async function retrieve<S extends z.ZodType>(
  http: Http,
  request: { readonly id: string; readonly name: string },
  schema: S,
): Promise<z.output<S>> {
  const deadline = performance.now() + http.timing.total * 1000;
  let pause = SHORTEST_PAUSE_MS;
  let serverErrors = 0;
  let asked = 0;
  for (;;) {
    const polled = performance.now();
    asked = 0;
    try {
      const answer = await http.once('retrieve_future', { request_id: request.id }, deadline - polled);
      const failure = failureIn(request.name, answer);
      if (failure === undefined) return read(request.name, schema, answer);
      if (failure !== 'pending') throw failure;
    } catch (error) {
      const again = isKind(error, 'busy', 'unreachable') || (isServerError(error) && serverErrors++ < SERVER_ERRORS);
      if (!again) throw named(request.name, error);
      asked = (error as TinkerError).waitMs ?? 0;
    }
    const now = performance.now();
    if (now >= deadline) throw new TinkerError('late', `${request.name}: no result within ${http.timing.total} s`);
    // A long poll that was held needs no pause.
    pause = now - polled > LONGEST_PAUSE_MS ? SHORTEST_PAUSE_MS : Math.min(pause * 1.5, LONGEST_PAUSE_MS);
    await sleep(Math.min(Math.max(pause, asked), deadline - now), undefined, { signal: http.signal }).catch(() => {});
  }
}

/** An answer of status 200 can be a result, a failure, or a notice that the result is pending. */
function failureIn(name: string, answer: unknown): TinkerError | 'pending' | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  if ('type' in answer && answer.type === 'try_again') return 'pending';
  if ('type' in answer && answer.type === 'RequestFailedResponse') return failureOf(name, 200, answer);
  return 'error' in answer && typeof answer.error === 'string' ? failureOf(name, 200, answer) : undefined;
}

/** The message names the request that failed, not the poll for its result. */
function named(name: string, error: unknown): unknown {
  if (!(error instanceof TinkerError)) return error;
  const { kind, status, shape, message } = error;
  const text = message.replace(/^retrieve_future/, name);
  return new TinkerError(kind, text, { status, ...(shape === undefined ? {} : { shape }) });
}
