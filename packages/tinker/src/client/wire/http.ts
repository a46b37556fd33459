import { setMaxListeners } from 'node:events';
import { AnswerError, reasonOf } from '@drmas/engine/errors';
import type { Secret } from '@drmas/engine/host';
import { askedWait, type WebAnswer, webRequest, withAskedWait } from '@drmas/engine/platform';
import pRetry from 'p-retry';
import { z } from 'zod';
import { failureOf, isKind, TinkerError } from './tinker-failure.js';

/** Time limits, in seconds. */
export interface Timing {
  /** After this time a poll for a result, or any other single request, is abandoned and sent again. */
  readonly request: number;
  /** After this time a pending result counts as failed, and a request without an answer is given up. */
  readonly total: number;
  readonly heartbeat: number;
  /** Pause before the first retry. It doubles with each retry. */
  readonly backOff: number;
  /** Retries of a request if no server answers, or the server is busy. */
  readonly retries: number;
}

export const defaultTiming: Timing = { request: 75, total: 1800, heartbeat: 10, backOff: 0.5, retries: 7 };

const LONGEST_BACK_OFF_MS = 15_000;

/** Codes of a request that did not leave: no address was found, or no connection was made. It can be sent again. */
const NOT_SENT = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT', 'ENOTFOUND', 'EAI_AGAIN']);

/** Retries of a request, or of a poll, after a server error: some servers and proxies send such errors at random. */
export const SERVER_ERRORS = 3;

export const isServerError = (error: unknown): boolean => isKind(error, 'failed') && error.status >= 500;

/** The size limit of answers: log-probs of a batch are a few megabytes. */
const LONGEST_ANSWER_BYTES = 64e6;

export interface HttpOptions {
  /** The server's address, without `/api/v1`. */
  readonly url: string;
  readonly apiKey: Secret | undefined;
  readonly timing: Timing;
  readonly signal: AbortSignal;
}

/** Whether a request may be sent again if its answer was lost. Default: yes, because a second run does no harm. */
export interface Repetition {
  readonly repeatable?: boolean;
}

interface Sent {
  readonly method?: 'POST' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The root of the protocol's requests, from a server's address as people write it. */
export const apiRoot = (url: string): string => `${url.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`;

/**
 * JSON over HTTP with one deadline per request. Errors are TinkerErrors. The key goes only to the server's own origin,
 * and is masked in the server's texts.
 */
export class Http {
  readonly timing: Timing;
  readonly signal: AbortSignal;
  readonly #root: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #secret: Secret | undefined;

  constructor({ url, apiKey, timing, signal }: HttpOptions) {
    this.timing = timing;
    this.signal = signal;
    setMaxListeners(0, signal); // every request that waits listens to it
    this.#root = apiRoot(url);
    this.#secret = apiKey;
    this.#headers = { accept: 'application/json', ...(apiKey && { 'x-api-key': apiKey.reveal() }) };
  }

  /** Without retries; GET without a `body`. @param leftMs Milliseconds until the deadline of the request's work */
  async once(path: string, body: unknown, leftMs = this.timing.total * 1000): Promise<unknown> {
    const response = await this.#send(path, this.#sent(body), leftMs);
    const text = response.text();
    const answer = parse(text);
    if (!response.ok) throw withAskedWait(failureOf(path, response.status, answer ?? text), response);
    if (answer === undefined)
      throw new TinkerError('malformed', `${path}: expected JSON, got ${JSON.stringify(text.slice(0, 60))}`);
    return answer;
  }

  /** Sends one request to delete the resource at a path. It is not repeated. */
  async delete(path: string): Promise<void> {
    const response = await this.#send(path, { method: 'DELETE', headers: this.#headers }, Number.POSITIVE_INFINITY);
    const text = response.text();
    if (!response.ok) throw failureOf(path, response.status, parse(text) ?? text);
  }

  #sent(body: unknown): Sent {
    if (body === undefined) return { headers: this.#headers };
    const headers = { ...this.#headers, 'content-type': 'application/json' };
    return { method: 'POST', headers, body: JSON.stringify(body) };
  }

  async #send(path: string, request: Sent, leftMs: number): Promise<WebAnswer> {
    try {
      const timeoutMs = Math.max(1, Math.min(this.timing.request * 1000, leftMs));
      const limits = { mostBytes: LONGEST_ANSWER_BYTES, timeoutMs, secret: this.#secret, signal: this.signal };
      return await webRequest(`${this.#root}/${path}`, { ...request, ...limits });
    } catch (error) {
      this.#throwIfClosed();
      if (error instanceof AnswerError) {
        const kind = error.reason === 'too-long' ? 'malformed' : 'refused';
        throw new TinkerError(kind, `${path}: ${error.message}`);
      }
      // Node's `fetch` gives no cause for a request that it cannot send, such as one with a key outside ASCII.
      if (error instanceof TypeError && error.cause === undefined)
        throw new TinkerError('refused', `${path}: the request cannot be sent: ${error.message}`);
      const { code = '' } = (error instanceof Error ? (error.cause ?? {}) : {}) as { code?: string };
      const kind = NOT_SENT.has(code) ? 'busy' : 'unreachable';
      throw new TinkerError(kind, `${path}: no answer from ${this.#root} (${reasonOf(error)})`);
    }
  }

  /**
   * Sends a request, and repeats it with back-off while the server is busy or absent. After a server error, or if the
   * reply was lost on the way, the request is sent again only if it is `repeatable`. All attempts together end with the
   * total deadline.
   */
  async ask<S extends z.ZodType>(
    path: string,
    body: unknown,
    schema: S,
    { repeatable = true }: Repetition = {},
  ): Promise<z.output<S>> {
    const start = performance.now();
    let serverErrors = 0;
    const leftMs = () => this.timing.total * 1000 - (performance.now() - start);
    const answer = await pRetry(() => this.once(path, body, leftMs()), {
      retries: this.timing.retries,
      minTimeout: this.timing.backOff * 1000,
      maxTimeout: LONGEST_BACK_OFF_MS,
      randomize: true,
      signal: this.signal,
      maxRetryTime: this.timing.total * 1000,
      onFailedAttempt: (failed) =>
        isKind(failed.error, 'busy') ? askedWait(failed, this.signal, leftMs()) : undefined,
      shouldRetry: ({ error }) =>
        isKind(error, 'busy') ||
        (repeatable && (isKind(error, 'unreachable') || (isServerError(error) && serverErrors++ < SERVER_ERRORS))),
    }).catch((error: unknown) => {
      this.#throwIfClosed();
      if (leftMs() <= 0 && isKind(error, 'busy', 'unreachable'))
        throw new TinkerError('unreachable', `${error.message}; not answered within ${this.timing.total} s`);
      throw error;
    });
    return read(path, schema, answer);
  }

  #throwIfClosed(): void {
    if (this.signal.aborted) throw new TinkerError('refused', 'the backend was disposed of');
  }
}

/** @throws TinkerError `malformed` with the field and its expected value */
export function read<S extends z.ZodType>(request: string, schema: S, answer: unknown): z.output<S> {
  const result = schema.safeParse(answer);
  if (result.success) return result.data;
  const text = z.prettifyError(result.error).replaceAll(/\s*\n\s*/g, ' ');
  throw new TinkerError('malformed', `${request}: the answer does not follow the protocol: ${text.slice(0, 300)}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON; the caller reports it with the status
  }
}
