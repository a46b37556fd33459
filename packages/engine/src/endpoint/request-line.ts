/** Requests to a model behind text: a few at the same time, until too many in a row have failed. */
import pLimit from 'p-limit';
import { EndpointError, reasonOf } from '../errors.js';

/** After this many failed requests in a row, each with its retries, the model counts as gone. */
const MOST_FAILURES = 32;

export interface RequestLineOptions {
  readonly concurrency: number;
  /** The address or the setting that errors begin with. */
  readonly place: string;
  readonly reason?: (error: unknown) => string;
  /** Whether no later request can succeed either. */
  readonly isFinal?: (error: unknown) => boolean;
}

/**
 * @throws EndpointError when no request can succeed; other errors are of this one request. Rejects with the signal's
 *   reason
 */
export function requestLine({ concurrency, place, reason = reasonOf, isFinal = () => false }: RequestLineOptions) {
  const limited = pLimit(concurrency);
  let failures = 0;
  return <Answer>(signal: AbortSignal, request: () => Promise<Answer>): Promise<Answer> =>
    limited(async () => {
      signal.throwIfAborted();
      try {
        const answer = await request();
        failures = 0;
        return answer;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof EndpointError) throw error;
        const shown = `${place}: ${reason(error)}`;
        failures++;
        if (isFinal(error)) throw new EndpointError(shown);
        if (failures >= MOST_FAILURES)
          throw new EndpointError(`${failures} requests in a row failed, the last: ${shown}`);
        throw new Error(shown);
      }
    });
}
