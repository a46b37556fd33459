/** How long a server asks its clients to wait before they repeat a request. */

/** The longest wait before a retry. A server that asks for a longer one is asked again after this time. */
export const LONGEST_RETRY_AFTER_MS = 120_000;

/**
 * The headers with a `Retry-After` between 0 and the longest wait, in milliseconds; without it if it is no time.
 * @param now The time in milliseconds since 1970, for a server that answers with a date
 */
export function boundedRetryAfter(headers: Headers, now: number): Headers {
  const bounded = new Headers(headers);
  const wait = askedWait(headers, now);
  bounded.delete('retry-after');
  bounded.delete('retry-after-ms');
  if (!Number.isNaN(wait)) bounded.set('retry-after-ms', `${Math.min(Math.max(1, wait), LONGEST_RETRY_AFTER_MS)}`);
  return bounded;
}

/** NaN if the server asks for no wait, or for one that cannot be read. */
function askedWait(headers: Headers, now: number): number {
  const ms = Number.parseFloat(headers.get('retry-after-ms') ?? '');
  if (!Number.isNaN(ms)) return ms;
  const text = headers.get('retry-after') ?? '';
  const seconds = Number.parseFloat(text);
  return Number.isNaN(seconds) ? Date.parse(text) - now : seconds * 1000;
}
