import { unlessAborted } from '@drmas/engine/host';
import type { Passage, Retriever } from './retriever.js';

interface Flight {
  readonly passages: Promise<readonly Passage[]>;
  readonly controller: AbortController;
  waiting: number;
}

/**
 * A retriever with a cache of the results of the latest `size` queries. Equal queries at the same time share one
 * search, which is aborted when no caller waits for it any more. Failures are not cached.
 */
export function cached(retriever: Retriever, size: number): Retriever {
  const remembered = new Map<string, readonly Passage[]>(); // the least recent query first
  const flights = new Map<string, Flight>();

  const remember = (key: string, passages: readonly Passage[]) => {
    remembered.delete(key);
    remembered.set(key, passages);
    const oldest = remembered.keys().next();
    if (remembered.size > size && !oldest.done) remembered.delete(oldest.value);
  };

  const takeOff = (key: string, query: string, topk: number): Flight => {
    const controller = new AbortController();
    const flight = { passages: retriever.search(query, topk, controller.signal), controller, waiting: 0 };
    flights.set(key, flight);
    const land = () => void (flights.get(key) === flight && flights.delete(key));
    flight.passages.then((passages) => {
      land();
      remember(key, passages);
    }, land);
    return flight;
  };

  return {
    async search(query, topk, signal) {
      signal.throwIfAborted();
      const key = `${topk} ${query}`;
      const passages = remembered.get(key);
      if (passages !== undefined) {
        remember(key, passages);
        return passages;
      }
      const flight = flights.get(key) ?? takeOff(key, query, topk);
      flight.waiting++;
      try {
        return await unlessAborted(flight.passages, signal);
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
