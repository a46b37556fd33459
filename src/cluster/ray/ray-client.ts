/** Ray's Jobs API over HTTP, at the address of the head's dashboard (port 8265). It needs no key. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { AnswerError, BackendError, RunError, reasonOf } from '@drmas/engine/errors';
import { byteText } from '@drmas/engine/host';
import { tlsFault } from '@drmas/engine/platform';
import pRetry from 'p-retry';
import { z } from 'zod';

const jobSchema = z.object({
  status: z.enum(['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'STOPPED']),
  message: z.string().nullish(),
  driver_exit_code: z.int().nullish(),
});

export type RayJob = z.output<typeof jobSchema>;

interface JobRequest {
  readonly id: string;
  readonly entrypoint: string;
  readonly cpus: number;
  /** The share of a card, or a number of cards. Undefined: none. */
  readonly gpus?: number | undefined;
  readonly packageName: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
}

const REQUEST_MS = 30_000;
/** How often a job is submitted again if the cluster accepts none: for about three minutes. */
const OFFERS = 40;
/** Replies while a node or the head starts, or has just gone. */
const PASSING = /No available agent| with (408|425|429|50[234]|52\d|530):/i;

export class RayClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url.replace(/\/+$/, '');
  }

  /** @throws RunError if no Ray answers at the address */
  async version(): Promise<string> {
    try {
      const { text } = await this.#ask('GET', '/api/version');
      return z.object({ ray_version: z.string() }).parse(JSON.parse(text)).ray_version;
    } catch (error) {
      throw new RunError(
        `there is no Ray at ${this.#url}: ${reasonOf(error)}; ` +
          "--ray is the address of the head's dashboard, http://HOST:8265",
      );
    }
  }

  /** Uploads a package if Ray does not have it. @throws RunError if it is too large for Ray */
  async upload(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const path = `/api/packages/gcs/${name}`;
    if (isGood(await this.#send('GET', path))) return;
    const reply = await this.#send('PUT', path, bytes);
    if (reply.status === 413 || /Entity ?Too ?Large/i.test(reply.text))
      throw new RunError(
        `Ray takes no package of ${byteText(bytes.length)}: give large task files by absolute paths that all nodes see`,
      );
    good(reply, 'PUT', path);
  }

  /** Repeats the request while the cluster accepts no jobs, or the head does not answer. */
  async submit(
    { id, entrypoint, cpus, gpus, packageName, environment, metadata }: JobRequest,
    signal: AbortSignal,
  ): Promise<void> {
    const body = {
      entrypoint,
      submission_id: id,
      entrypoint_num_cpus: cpus,
      ...(gpus === undefined ? {} : { entrypoint_num_gpus: gpus }),
      metadata,
      runtime_env: { working_dir: `gcs://${packageName}`, env_vars: environment },
    };
    const text = JSON.stringify(body);
    await pRetry(
      async (attempt) => {
        if (attempt > 1 && (await this.job(id)) !== undefined) return; // accepted, but the answer was lost
        await this.#ask('POST', '/api/jobs/', text);
      },
      {
        retries: OFFERS,
        minTimeout: 500,
        maxTimeout: 5000,
        signal,
        shouldRetry: ({ error }) => !(error instanceof BackendError) || PASSING.test(error.message),
      },
    );
  }

  async job(id: string): Promise<RayJob | undefined> {
    const response = await this.#send('GET', `/api/jobs/${id}`);
    if (response.status === 404) return undefined;
    return jobSchema.parse(JSON.parse(good(response, 'GET', id).text));
  }

  /** Undefined if Ray has none. @throws BackendError if Ray cannot read it, for a moment or because its node is gone */
  async logs(id: string): Promise<string | undefined> {
    const response = await this.#send('GET', `/api/jobs/${id}/logs`);
    if (response.status === 404) return undefined;
    const { text } = good(response, 'GET', `the log of ${id}`);
    return z.object({ logs: z.string().nullish() }).parse(JSON.parse(text)).logs ?? '';
  }

  async stop(id: string): Promise<void> {
    await this.#ask('POST', `/api/jobs/${id}/stop`);
  }

  async #ask(method: string, path: string, body?: Body): Promise<RayReply> {
    return good(await this.#send(method, path, body), method, path);
  }

  /** Does not use `fetch`: because of its headers Ray takes the sender for a browser page, which may not write. */
  #send(method: string, path: string, body?: Body): Promise<RayReply> {
    const url = new URL(`${this.#url}${path}`);
    const type = typeof body === 'string' ? 'application/json' : 'application/octet-stream';
    const headers = body === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(body) };
    const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const outgoing = request(url, { method, headers, timeout: REQUEST_MS }, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer within ${REQUEST_MS / 1000} s`)));
      outgoing.on('error', (error) => {
        const fault = tlsFault(error);
        reject(fault === undefined ? error : new AnswerError('untrusted', fault));
      });
      outgoing.end(body);
    });
  }
}

type Body = string | Uint8Array<ArrayBuffer>;

interface RayReply {
  readonly status: number;
  readonly text: string;
}

const isGood = ({ status }: RayReply) => status >= 200 && status < 300;

function good(answer: RayReply, method: string, what: string): RayReply {
  if (isGood(answer)) return answer;
  const reason = answer.text.trim().split('\n').at(-1) ?? '';
  throw new BackendError(`Ray answered ${method} ${what} with ${answer.status}: ${reason.slice(0, 500)}`);
}
