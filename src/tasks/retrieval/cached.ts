import type { Passage, Retriever } from './retriever.js';

/** A search that several callers wait for. */
interface Flight {
  readonly found: Promise<readonly Passage[]>;
  readonly controller: AbortController;
  waiting: number;
}

/**
 * The same retriever, which remembers the results of the `size` queries asked last. Equal queries at the same time are
 * searched once, and given up when nobody waits for them any more. Failures are not remembered.
 */
export function cached(retriever: Retriever, size: number): Retriever {
  const remembered = new Map<string, readonly Passage[]>(); // the query asked longest ago first
  const flights = new Map<string, Flight>();

  const remember = (key: string, found: readonly Passage[]) => {
    remembered.delete(key);
    remembered.set(key, found);
    const oldest = remembered.keys().next();
    if (remembered.size > size && !oldest.done) remembered.delete(oldest.value);
  };

  const takeOff = (key: string, query: string, topk: number): Flight => {
    const controller = new AbortController();
    const flight = { found: retriever.search(query, topk, controller.signal), controller, waiting: 0 };
    flights.set(key, flight);
    const land = () => void (flights.get(key) === flight && flights.delete(key));
    flight.found.then((passages) => {
      land();
      remember(key, passages);
    }, land);
    return flight;
  };

  return {
    async search(query, topk, signal) {
      signal.throwIfAborted();
      const key = `${topk} ${query}`;
      const known = remembered.get(key);
      if (known !== undefined) {
        remember(key, known);
        return known;
      }
      const flight = flights.get(key) ?? takeOff(key, query, topk);
      flight.waiting++;
      try {
        return await untilAborted(flight.found, signal);
      } finally {
        flight.waiting--;
        if (flight.waiting === 0 && flights.get(key) === flight) {
          flights.delete(key);
          flight.controller.abort(signal.reason);
        }
      }
    },
  };
}

/** The promise, or the signal's reason if that fires first. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    const settled = () => signal.removeEventListener('abort', abort);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(settled);
  });
}
