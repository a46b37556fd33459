import pRetry from 'p-retry';
import { AnswerError, RunError, reasonOf } from '../core/errors.js';
import type { Secret } from '../core/secret.js';
import { isObject } from '../core/validation/objects.js';
import { type WebAnswer, webRequest } from '../platform/web-request.js';

/** A busy machine may need a while to answer; nothing waits for a tracker but its own queue. */
const TIMEOUT_MS = 60_000;
const MOST_BYTES = 50_000_000;
/** Repetitions of what found nobody, or a server that is busy. */
const RETRIES = 4;
const RETRY_DELAY_MS = 300;
/** Answers of servers, and of proxies before them, that another attempt may not get. */
const PASSING = [429, 502, 503, 504];
/** Failures that are mistakes in an address until it has answered once. */
const NOBODY = /ECONNREFUSED|ENOTFOUND|bad port/;

interface TrackerServerOptions {
  /** For messages: `the MLflow server`. */
  readonly name: string;
  /** Its address, without a `/` at the end. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Masked in what the server says. */
  readonly secret: Secret | undefined;
}

/** JSON over HTTP with the server of a tracker. What may pass is asked again: a run takes hours. */
export class TrackerServer {
  readonly url: string;
  readonly #options: TrackerServerOptions;
  #answered = false;

  constructor(options: TrackerServerOptions) {
    this.url = options.url;
    this.#options = options;
  }

  /**
   * Asks with GET, or posts a body.
   * @param once for what must not be done twice, though nobody can say whether it was
   * @throws RunError with what the server said
   */
  async ask(path: string, body?: unknown, { once = false } = {}): Promise<unknown> {
    const answer = await this.send(path, body, { once });
    if (!answer.ok) throw this.#refusal(answer);
    try {
      return JSON.parse(answer.text());
    } catch {
      throw new RunError(`${this.#options.name} at ${this.url} answered /${path} with what is no JSON`);
    }
  }

  /** The answer, whatever its status. @throws RunError where there is none */
  async send(path: string, body?: unknown, { once = false } = {}): Promise<WebAnswer> {
    const { name } = this.#options;
    const attempt = async () => {
      const answer = await this.#attempt(path, body);
      this.#answered = true;
      if (PASSING.includes(answer.status) && !once) throw this.#refusal(answer);
      return answer;
    };
    return pRetry(attempt, {
      retries: once ? 0 : RETRIES,
      minTimeout: RETRY_DELAY_MS,
      shouldRetry: ({ error }) => !(error instanceof AnswerError) && (this.#answered || !NOBODY.test(reasonOf(error))),
    }).catch((error: unknown) => {
      throw error instanceof RunError
        ? error
        : new RunError(`${name} at ${this.url} cannot be asked: ${reasonOf(error)}`);
    });
  }

  #attempt(path: string, body: unknown): Promise<WebAnswer> {
    const { headers, secret } = this.#options;
    return webRequest(`${this.url}/${path}`, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/json', ...headers },
      signal: new AbortController().signal,
      timeoutMs: TIMEOUT_MS,
      mostBytes: MOST_BYTES,
      secret,
    });
  }

  #refusal(answer: WebAnswer): RunError {
    const reason = answer.text().slice(0, 300);
    return new RunError(`${this.#options.name} at ${this.url} answered ${answer.status}: ${reason}`);
  }
}

/** An address as requests go on from it: without what may follow the path, a name and a password among it. */
export function rootOf(address: string): string {
  const { origin, pathname } = new URL(address);
  return `${origin}${pathname.replace(/\/+$/, '')}`;
}

/** The dotted paths and values of a recipe's settings. */
export function* settingLeaves(value: unknown, path = ''): Generator<[string, string]> {
  if (!isObject(value)) yield [path, typeof value === 'string' ? value : (JSON.stringify(value) ?? '')];
  else
    for (const [key, inner] of Object.entries(value)) yield* settingLeaves(inner, path === '' ? key : `${path}.${key}`);
}
