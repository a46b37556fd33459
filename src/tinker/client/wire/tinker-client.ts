import type { z } from 'zod';
import { waitMs } from '../../../base/host.js';
import { capabilitiesAnswer, futureAnswer, heartbeatAnswer, sessionAnswer } from './answers.js';
import { retrieve } from './futures.js';
import { Http, type HttpOptions } from './http.js';
import { isKind } from './tinker-failure.js';

/** The version of the protocol, as its SDK numbers it: the last version whose bodies are all JSON. */
const PROTOCOL_VERSION = '0.24.1';

/** A request that the server has accepted. */
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
  /**
   * Oldest first. New models belong to the newest session. All sessions are kept alive, because older ones have models.
   */
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

  /** The number of the next model. */
  nextModel(): number {
    return this.#models++;
  }

  /** The number of the next sampling session. */
  nextSampler(): number {
    return this.#samplers++;
  }

  /** Names of the models that the server trains, and whether the server is drmas's own. */
  async baseModels(): Promise<{ readonly names: string[]; readonly isDrmas: boolean }> {
    const { supported_models, drmas } = await this.#http.ask('get_server_capabilities', undefined, capabilitiesAnswer, {
      repeatable: true,
    });
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
    const { session_id } = await this.#http.ask('create_session', body, sessionAnswer, { repeatable: true });
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

  /**
   * Submits a request.
   * @param repeatable The request may be sent again if the answer was lost: a second run does no harm
   */
  async submit(path: string, body: unknown, options: { readonly repeatable: boolean }): Promise<Submitted> {
    const { request_id, model_id } = await this.#http.ask(path, body, futureAnswer, options);
    return {
      id: request_id,
      modelId: model_id ?? undefined,
      result: (schema) => retrieve(this.#http, { id: request_id, name: path }, schema),
    };
  }

  /** A request with an immediate answer. */
  ask<S extends z.ZodType>(path: string, body: unknown, schema: S): Promise<z.output<S>> {
    return this.#http.ask(path, body, schema, { repeatable: true });
  }

  /** Stops all requests. */
  close(): void {
    clearInterval(this.#heartbeat);
    this.#close.abort();
  }
}
