/** One HTTP request that stays with its intended server, with a limit on the answer's length. */

import { setTimeout as sleep } from 'node:timers/promises';
import { waitMs } from '../core/clock.js';
import { AnswerError } from '../core/errors.js';
import { byteText } from '../core/format.js';
import type { Secret } from '../core/secret.js';
import { onAbort, unlessAborted } from './on-abort.js';
import { patientFetch } from './patient-fetch.js';

export interface WebRequest {
  /** GET by default. */
  readonly method?: string;
  readonly headers?: NonNullable<RequestInit['headers']>;
  readonly body?: RequestInit['body'];
  readonly signal: AbortSignal;
  /** Milliseconds until the whole answer must be there. */
  readonly timeoutMs?: number;
  /** The most bytes that are read of the answer, after its decompression. */
  readonly mostBytes: number;
  /** Redirects to another origin: refused by default, or followed without any of the headers. */
  readonly elsewhere?: 'without-headers';
  /** A secret that is masked in all texts of the server. */
  readonly secret?: Secret | undefined;
}

export interface WebAnswer {
  readonly status: number;
  /** A status of 200 to 299. */
  readonly ok: boolean;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  /** The bytes as text, with the secret masked. */
  text(): string;
}

const REDIRECTS = [301, 302, 303, 307, 308];

/** The most times that a server may send a request on within its own origin. */
const MOST_HOPS = 5;

/**
 * Sends a request. It follows a redirect only within the same origin (scheme, host and port), and only if method and
 * body stay the same: a key or a prompt reaches no server that the caller did not name.
 * @throws AnswerError for a redirect that is not followed, for an answer that is too long, and for a server whose TLS
 *   is refused; the signal's reason; a DOMException `TimeoutError`; the errors of `fetch`
 */
export async function webRequest(url: string, request: WebRequest): Promise<WebAnswer> {
  const { signal, timeoutMs } = request;
  signal.throwIfAborted();
  const controller = new AbortController();
  const stopListening = onAbort(signal, () => controller.abort(signal.reason));
  // Not AbortSignal.timeout: Node 20 may collect it as garbage inside AbortSignal.any, and it never fires.
  const late = () => controller.abort(new DOMException(`no answer within ${timeoutMs} ms`, 'TimeoutError'));
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, waitMs(timeoutMs));
  try {
    // Node's `fetch` may wait for ever if it is aborted in the middle of a compressed body.
    return await unlessAborted(answerTo(url, { ...request, signal: controller.signal }), controller.signal);
  } finally {
    clearTimeout(timer);
    stopListening();
  }
}

async function answerTo(url: string, request: WebRequest): Promise<WebAnswer> {
  const { mostBytes, elsewhere, secret, method = 'GET', body = null, signal } = request;
  let { headers: sent = {} } = request;

  let address = new URL(url);
  for (let hops = 0; ; hops++) {
    const response = await patientFetch(address, { method, headers: sent, body, signal, redirect: 'manual' });
    const { status, ok, headers } = response;
    if (!REDIRECTS.includes(status)) {
      const bytes = await bytesOf(response, mostBytes);
      const text = () => {
        const decoded = new TextDecoder().decode(bytes);
        return secret === undefined ? decoded : secret.mask(decoded);
      };
      return { status, ok, headers, bytes, text };
    }
    await response.body?.cancel();
    const target = targetOf(headers.get('location'), address);
    const refuse = (why: string) => new AnswerError('redirect', secret === undefined ? why : secret.mask(why));
    if (target === undefined) throw refuse(`${status}: the server redirects requests, but to no address`);
    if (target.origin !== address.origin && elsewhere === 'without-headers') sent = {};
    else if (target.origin !== address.origin)
      throw refuse(
        `${status}: the server redirects requests to ${target.origin}; drmas sends them only to ${address.origin}`,
      );
    if (method !== 'GET' && status !== 307 && status !== 308)
      throw refuse(
        `${status}: the server redirects a ${method} to ${target.pathname} with a status that drops its body`,
      );
    if (hops === MOST_HOPS) throw refuse(`${status}: the server redirected a request more than ${MOST_HOPS} times`);
    address = target;
  }
}

function targetOf(location: string | null, from: URL): URL | undefined {
  return location !== null && URL.canParse(location, from.href) ? new URL(location, from) : undefined;
}

/**
 * The body of an answer, decompressed.
 * @throws AnswerError when it has more than `most` bytes; the rest is not read then
 */
export async function bytesOf(response: Response, most: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  // The chunks are decompressed already; leaving the loop closes the connection.
  for await (const part of response.body ?? []) {
    length += part.length;
    if (length > most) throw new AnswerError('too-long', `the answer is longer than ${byteText(most)}`);
    parts.push(part);
  }
  return Buffer.concat(parts, length);
}

/**
 * Whether a server, or a proxy in front of it, may answer the same request otherwise later: it was too slow (408), is
 * busy (425, 429, 503), or is not behind its proxy (502, 504). Cloudflare has statuses of its own for that, from 520 to
 * 530, and providers of models say 529 if they are busy.
 */
export const isPassing = (status: number): boolean =>
  [408, 425, 429, 502, 503, 504].includes(status) || (status >= 520 && status <= 530);

/** The longest wait before a retry. A server that asks for a longer one is asked again after this time. */
export const LONGEST_RETRY_AFTER_MS = 120_000;

/**
 * The milliseconds that a server asks its clients to wait, at least 1 and at most the longest wait. Undefined if it
 * asks for no wait, or for one that cannot be read.
 * @param now The time in milliseconds since 1970 if the answer has no date: the server's clock may differ from this one
 */
export function retryAfterMs(headers: Headers, now = Date.now()): number | undefined {
  const text = headers.get('retry-after') ?? '';
  const seconds = /^\s*\d{4}-\d\d/.test(text) ? Number.NaN : Number.parseFloat(text); // some servers write ISO dates
  const asked = Number.parseFloat(headers.get('retry-after-ms') ?? '');
  const sent = Date.parse(headers.get('date') ?? '');
  const later = Number.isNaN(seconds) ? Date.parse(text) - (Number.isNaN(sent) ? now : sent) : seconds * 1000;
  const [wait = Number.NaN] = [asked, later, resetMs(headers)].filter((each) => !Number.isNaN(each));
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(1, wait), LONGEST_RETRY_AFTER_MS);
}

/**
 * The milliseconds until a limit that is used up begins anew; NaN if there is none. Hugging Face's hub sends only this,
 * as a draft of the IETF has it (draft-ietf-httpapi-ratelimit-headers): `"api";r=0;t=55`.
 */
function resetMs(headers: Headers): number {
  const limits = (headers.get('ratelimit') ?? '').split(',');
  const spent = limits.find((limit) => /;\s*r=0\b/.test(limit)) ?? '';
  return Number.parseInt(/;\s*t=(\d+)/.exec(spent)?.[1] ?? '', 10) * 1000;
}

/** A failed attempt, as p-retry reports it. */
interface FailedAttempt {
  readonly error: Error & { readonly waitMs?: number | undefined };
  readonly retriesLeft: number;
}

/** The error of an attempt that was refused, with the wait that the server asks for, for `askedWait`. */
export const withAskedWait = <E extends Error>(error: E, { headers }: Pick<WebAnswer, 'headers'>): E =>
  Object.assign(error, { waitMs: retryAfterMs(headers) });

/**
 * Waits as long as the server asked, before the next attempt; for `onFailedAttempt` of p-retry.
 * @param most The longest wait, in milliseconds
 */
export async function askedWait(
  { error, retriesLeft }: FailedAttempt,
  signal?: AbortSignal,
  most = LONGEST_RETRY_AFTER_MS,
): Promise<void> {
  if (error.waitMs === undefined || retriesLeft === 0) return;
  // p-retry looks at the signal itself
  await sleep(Math.max(0, Math.min(error.waitMs, most)), undefined, { signal }).catch(() => {});
}
