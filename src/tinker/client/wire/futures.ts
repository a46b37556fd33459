import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { type Http, read } from './http.js';
import { failureOf, isKind, TinkerError } from './tinker-failure.js';

/** Servers hold a poll until there is a result. After a reply without a result, the next poll waits this long. */
const SHORTEST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 5000;
/** Retries of a poll after a server error: some proxies send such errors at random. */
const SERVER_ERRORS = 3;

/**
 * Waits for the result of an accepted request. Every poll has its own deadline, and all polls together have the total
 * one. After a dropped connection or a restart, the next poll follows.
 * @throws TinkerError `late` after the total deadline, `lost` when the server does not know the request (any more)
 */
export async function retrieve<S extends z.ZodType>(
  http: Http,
  request: { readonly id: string; readonly name: string },
  schema: S,
): Promise<z.output<S>> {
  const deadline = performance.now() + http.timing.total * 1000;
  let pause = SHORTEST_PAUSE_MS;
  let serverErrors = 0;
  for (;;) {
    const polled = performance.now();
    try {
      const answer = await http.once('retrieve_future', { request_id: request.id }, deadline - polled);
      const failure = failureIn(request.name, answer);
      if (failure === undefined) return read(request.name, schema, answer);
      if (failure !== 'pending') throw failure;
    } catch (error) {
      const again =
        isKind(error, 'busy', 'unreachable') ||
        (isKind(error, 'failed') && error.status >= 500 && serverErrors++ < SERVER_ERRORS);
      if (!again) throw named(request.name, error);
    }
    const now = performance.now();
    if (now >= deadline) throw new TinkerError('late', `${request.name}: no result within ${http.timing.total} s`);
    // A long poll that was held needs no pause.
    pause = now - polled > LONGEST_PAUSE_MS ? SHORTEST_PAUSE_MS : Math.min(pause * 1.5, LONGEST_PAUSE_MS);
    await sleep(Math.min(pause, deadline - now), undefined, { signal: http.signal }).catch(() => {});
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
