/** JSON over HTTP with a sampling engine. A request without a reply is sent again: sampling twice does no harm. */
import pRetry from 'p-retry';
import { z } from 'zod';
import { BackendError, reasonOf } from '../errors.js';
import type { Secret } from '../host.js';
import { excerpt } from '../host.js';
import { askedWait, isPassing, type WebAnswer, webRequest, withAskedWait } from '../platform.js';

const TIMEOUT_MS = 600_000;

export interface EngineAddress {
  readonly url: string;
  readonly apiKey: Secret | undefined;
}

/** A reply with its status. `body` is JSON, or a text if the reply is not JSON. */
export interface JsonAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Limit of a reply; the longest response with its log-probs is far shorter. */
const LONGEST_ANSWER_BYTES = 64e6;
const RETRIES = 5;
class Busy extends Error {}

export class EngineHttp {
  readonly root: string;
  readonly #apiKey: Secret | undefined;
  readonly #backOffMs: number;

  constructor({ url, apiKey }: EngineAddress, backOffMs = 500) {
    this.root = url.replace(/\/+$/, '').replace(/\/v1$/, '');
    this.#apiKey = apiKey;
    this.#backOffMs = backOffMs;
  }

  /**
   * Sends a GET request, or a POST request if there is a body.
   * @throws BackendError if there is no reply; the signal's reason
   */
  async ask(path: string, body: unknown, signal: AbortSignal = new AbortController().signal): Promise<JsonAnswer> {
    const apiKey = this.#apiKey;
    const key = apiKey && { authorization: `Bearer ${apiKey.reveal()}` };
    const posted = { method: 'POST', headers: { ...key, 'content-type': 'application/json' } };
    const sent = body === undefined ? { headers: { ...key } } : { ...posted, body: JSON.stringify(body) };
    const limits = { mostBytes: LONGEST_ANSWER_BYTES, timeoutMs: TIMEOUT_MS, secret: apiKey, signal };
    const once = async (): Promise<WebAnswer> => {
      const answer = await webRequest(`${this.root}${path}`, { ...sent, ...limits });
      if (isPassing(answer.status))
        throw withAskedWait(new Busy(`status ${answer.status}: ${excerpt(answer.text(), 200)}`), answer);
      return answer;
    };
    try {
      const answer = await pRetry(once, {
        retries: RETRIES,
        minTimeout: this.#backOffMs,
        maxTimeout: 10_000,
        signal,
        onFailedAttempt: (failed) => askedWait(failed, signal),
        shouldRetry: ({ error }) => error instanceof Busy || isUnreachable(error),
      });
      return { status: answer.status, body: parsed(answer.text()) };
    } catch (error) {
      signal.throwIfAborted();
      throw new BackendError(`${path}: no answer from the engine at ${this.root}: ${reasonOf(error)}`);
    }
  }

  /** Sends a request and reads a reply of this schema. @throws BackendError for any other reply */
  async read<S extends z.ZodType>(path: string, schema: S, body?: unknown, signal?: AbortSignal): Promise<z.output<S>> {
    return this.parse(path, schema, await this.ask(path, body, signal));
  }

  /** @throws BackendError with the engine's text if the reply is an error, or not of this schema */
  parse<S extends z.ZodType>(path: string, schema: S, { status, body }: JsonAnswer): z.output<S> {
    if (status < 200 || status > 299)
      throw new BackendError(`${path}: ${this.root} answered ${status}: ${errorText(body)}`);
    const result = schema.safeParse(body);
    if (result.success) return result.data;
    const reason = z.prettifyError(result.error).replaceAll(/\s*\n\s*/g, ' ');
    throw new BackendError(`${path}: ${this.root} answered something else than expected: ${excerpt(reason, 300)}`);
  }
}

/** A server's error on one line. */
export const errorText = (body: unknown): string =>
  excerpt(typeof body === 'string' ? body : JSON.stringify(body), 400);

/** `fetch` throws a TypeError if a connection fails or breaks. */
const isUnreachable = (error: unknown): boolean => error instanceof TypeError;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // errors of a proxy are not JSON
  }
}
