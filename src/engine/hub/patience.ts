import pRetry from 'p-retry';
import { HubError } from '../../base/errors.js';

export interface Patience {
  readonly retries: number;
  /** Wait before the first repetition; it doubles with each further one. */
  readonly retryDelayMs: number;
  readonly signal: AbortSignal;
}

/**
 * Repeats work that failed, if another attempt may succeed.
 * @throws the last failure, or the signal's reason
 */
export function patiently<T>(ask: () => Promise<T>, { retries, retryDelayMs, signal }: Patience): Promise<T> {
  const another = new Set<HubError['reason']>(['unreachable', 'damaged']);
  return pRetry(ask, {
    retries,
    minTimeout: retryDelayMs,
    signal,
    shouldRetry: ({ error }) => error instanceof HubError && another.has(error.reason),
  });
}
