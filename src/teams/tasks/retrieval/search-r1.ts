import { setTimeout as sleep } from 'node:timers/promises';
import { issuesText, madeWith, messageOf } from '@drmas/engine/errors';
import { excerpt, unlessAborted, waitMs } from '@drmas/engine/host';
import { webRequest } from '@drmas/engine/platform';
import { serverUrl } from '@drmas/engine/requests';
import pLimit from 'p-limit';
import { z } from 'zod';
import { cached } from './cached.js';
import { passageOf } from './corpus.js';
import type { Passage, Retriever } from './retriever.js';

/** The options of `searchR1Retriever`. */
export interface SearchR1Options {
  /** The address of the server, with or without `/retrieve` at its end. */
  readonly url: string;
  /**
   * The longest time for one request.
   * @default 30_000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * The most repetitions of a failed request.
   * @default 3
   */
  readonly retries?: number | undefined;
  /**
   * The wait before the first repetition; it doubles with each further one.
   * @default 200
   */
  readonly retryDelayMs?: number | undefined;
  /**
   * The most requests at the same time; further ones wait.
   * @default 16
   */
  readonly concurrency?: number | undefined;
  /**
   * The most queries whose results are cached.
   * @default 10_000
   */
  readonly cacheSize?: number | undefined;
}

const optionsSchema = z.strictObject({
  url: serverUrl('a retrieval server, such as http://127.0.0.1:8000', 'a proxy before it'),
  timeoutMs: z.int().min(1).default(30_000),
  retries: z.int().min(0).default(3),
  retryDelayMs: z.int().min(0).default(200),
  concurrency: z.int().min(1).default(16),
  cacheSize: z.int().min(0).default(10_000),
});

const document = z.union([
  z.object({ contents: z.string() }).transform(({ contents }) => passageOf(contents)),
  z.object({ title: z.string().optional(), text: z.string() }),
]);

/** The server's reply: one list of documents for each query; with scores each document is wrapped in an object. */
const replySchema = z.object({
  result: z.array(z.array(z.union([z.object({ document }).transform(({ document }) => document), document]))),
});

/** The request, for the message of a server that refuses it. */
const SCHEMA =
  "drmas posts { queries: [text] } (Search-R1), query: text (the server of Dr. MAS's authors), topk and return_scores";

/** A few passages are kilobytes. */
const LONGEST_ANSWER_BYTES = 16e6;

/** A failure that a retry can avoid. */
class Transient extends Error {}

/**
 * A retriever on a server with the protocol of Search-R1 (Jin et al. 2025) or of the Dr. MAS paper's code: `POST
 * /retrieve` with `{ queries, query, topk, return_scores }` returns `{ result }`, the documents for each query, best
 * first. Search-R1's server reads `queries`, the paper's server `query`; each ignores the other field. drmas retries
 * requests that time out, reach no server, or get status 429 or 5xx. After the last attempt, and for any other reply,
 * the search and its episode fail. They also fail if the server redirects a query, or replies with more than 16 MB. A
 * run makes one search before it begins, and does not begin if this fails.
 *
 * @throws ArgumentError naming the option that is wrong.
 *
 * @example
 * ```ts
 * import { searchR1Retriever } from 'drmas/tasks';
 *
 * const retriever = searchR1Retriever({ url: 'http://127.0.0.1:8000' });
 * ```
 */
export function searchR1Retriever(options: SearchR1Options): Retriever {
  const checked = madeWith(optionsSchema, options, 'searchR1Retriever');
  const { url, timeoutMs, retries, retryDelayMs, concurrency, cacheSize } = checked;
  const endpoint = url.replace(/\/(?:retrieve\/?)?$/, '').concat('/retrieve');
  const limited = pLimit(concurrency);

  const attempt = async (query: string, topk: number, signal: AbortSignal): Promise<readonly Passage[]> => {
    try {
      const answer = await webRequest(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ queries: [query], query, topk, return_scores: true }),
        signal,
        timeoutMs,
        mostBytes: LONGEST_ANSWER_BYTES,
      });
      const { status } = answer;
      if (status === 429 || status >= 500) throw new Transient(`status ${status}`);
      if (!answer.ok) throw new Error(`status ${status}: ${answer.text().slice(0, 200)}; ${SCHEMA}`);
      const reply = replySchema.safeParse(JSON.parse(answer.text()));
      if (!reply.success)
        throw new Error(`the answer is not Search-R1's: ${issuesText(reply.error.issues)}; ${SCHEMA}`);
      const [passages] = reply.data.result;
      if (passages === undefined) throw new Error(`the answer has no list for the query`);
      return passages.slice(0, topk);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof DOMException && error.name === 'TimeoutError') throw new Transient(error.message);
      // fetch says "fetch failed" and gives the reason as the cause.
      if (error instanceof TypeError) throw new Transient(messageOf(error.cause ?? error));
      throw error;
    }
  };

  const search = async (query: string, topk: number, signal: AbortSignal) => {
    for (let tried = 1; ; tried++) {
      try {
        return await limited(() => {
          signal.throwIfAborted();
          return attempt(query, topk, signal);
        });
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof Transient)) throw new Error(`${endpoint}: ${excerpt(messageOf(error), 1000)}`);
        if (tried > retries) throw new Error(`${endpoint}: ${error.message} (${tried} attempts)`);
        await unlessAborted(sleep(waitMs(retryDelayMs * 2 ** (tried - 1))), signal);
      }
    }
  };
  return {
    ...cached({ search }, cacheSize),
    async check(signal) {
      await search('a query before the run', 1, signal);
    },
  };
}
