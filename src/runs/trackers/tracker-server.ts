import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AnswerError, isObject, RunError, reasonOf } from '@drmas/engine/errors';
import type { Secret, TrackedRun } from '@drmas/engine/host';
import { askedWait, isPassing, nodeFiles, type WebAnswer, webRequest, withAskedWait } from '@drmas/engine/platform';
import pRetry from 'p-retry';
import { z } from 'zod';

// A file in the run's directory with the run's name on a server, so that a resumed run keeps that name. After an
// accepted change the run gets a new name: the server may have steps that are played again with other values.

const schema = z.object({ server: z.string(), runId: z.string(), acceptedChanges: z.number().default(0) });

/** The name of the run on the server at `url`; undefined if this server does not have the run as it goes on. */
export async function recordedRun(run: TrackedRun, file: string, url: string): Promise<string | undefined> {
  const known = await readFile(join(run.path, file), 'utf8').then(
    (text) => schema.parse(JSON.parse(text)),
    () => undefined,
  );
  return known?.server === url && known.acceptedChanges === run.acceptedChanges ? known.runId : undefined;
}

export function recordRun(
  { path, acceptedChanges }: TrackedRun,
  file: string,
  place: { readonly server: string; readonly runId: string },
): Promise<void> {
  return nodeFiles.replace(join(path, file), `${JSON.stringify({ ...place, acceptedChanges })}\n`);
}

/** A busy machine may need a while to answer; only the tracker's own queue waits for it. */
const TIMEOUT_MS = 60_000;
const MOST_BYTES = 50_000_000;
const RETRIES = 4;
const RETRY_DELAY_MS = 300;
/** Network errors that mean a wrong address, until the address has answered once. */
const NOBODY = /ECONNREFUSED|ENOTFOUND|bad port/;

interface TrackerServerOptions {
  /** For messages: `the MLflow server`. */
  readonly name: string;
  /** Its address, without a `/` at the end. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Masked in the server's replies. */
  readonly secret: Secret | undefined;
}

/**
 * JSON over HTTP with the server of a tracker. Requests that failed for a temporary reason are repeated, because a run
 * takes hours.
 */
export class TrackerServer {
  readonly url: string;
  readonly #options: TrackerServerOptions;
  #answered = false;

  constructor(options: TrackerServerOptions) {
    this.url = options.url;
    this.#options = options;
  }

  /**
   * Sends a GET request, or posts a body.
   * @param once For a request that must not be repeated, even if it is unknown whether it succeeded
   * @throws RunError with the server's reply
   */
  async ask(path: string, body?: unknown, { once = false } = {}): Promise<unknown> {
    return this.content(path, await this.send(path, body, { once }));
  }

  /** The value of an answer. @throws RunError with the server's reply, or if it is not JSON */
  content(path: string, answer: WebAnswer): unknown {
    if (!answer.ok) throw this.#refusal(answer);
    try {
      return JSON.parse(answer.text());
    } catch {
      throw new RunError(`${this.#options.name} at ${this.url} answered /${path} with a text that is not JSON`);
    }
  }

  /** The answer with any status. @throws RunError if no server answers */
  async send(path: string, body?: unknown, { once = false } = {}): Promise<WebAnswer> {
    const { name } = this.#options;
    const attempt = async () => {
      const answer = await this.#attempt(path, body);
      this.#answered = true;
      if (isPassing(answer.status) && !once) throw withAskedWait(this.#refusal(answer), answer);
      return answer;
    };
    return pRetry(attempt, {
      retries: once ? 0 : RETRIES,
      minTimeout: RETRY_DELAY_MS,
      onFailedAttempt: (failed) => askedWait(failed),
      shouldRetry: ({ error }) => !(error instanceof AnswerError) && (this.#answered || !NOBODY.test(reasonOf(error))),
    }).catch((error: unknown) => {
      throw error instanceof RunError
        ? error
        : new RunError(`${name} at ${this.url} cannot be reached: ${reasonOf(error)}`);
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

/** The origin and path of an address, without name, password and query. */
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
