import { macrotask } from '../platform/macrotask.js';

/**
 * Delivers the results of concurrent work in the order in which the work began, each in a separate macrotask. The
 * team's code has reacted to one reply (with further calls, for instance) before the next arrives, so the order of an
 * episode's calls depends on that code alone and never on which generation was ready first.
 */
export class OrderedReplies {
  readonly #waiting: { deliver?: () => void }[] = [];
  readonly #schedule: (task: () => void) => void;
  #scheduled = false;
  #stopped = false;

  constructor(schedule = macrotask) {
    this.#schedule = schedule;
  }

  /** Calls `receive` once `work` has settled and all results that were added before have been delivered. */
  add<T>(work: Promise<T>, receive: (result: PromiseSettledResult<T>) => void): void {
    if (this.#stopped) return;
    const entry: { deliver?: () => void } = {};
    this.#waiting.push(entry);
    const settle = (result: PromiseSettledResult<T>) => {
      entry.deliver = () => receive(result);
      this.#next();
    };
    work.then(
      (value) => settle({ status: 'fulfilled', value }),
      (reason) => settle({ status: 'rejected', reason }),
    );
  }

  /** Ends the delivery: no result is delivered any more. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.length = 0;
  }

  #next(): void {
    if (this.#scheduled || this.#waiting[0]?.deliver === undefined) return;
    this.#scheduled = true;
    this.#schedule(() => {
      this.#scheduled = false;
      this.#waiting.shift()?.deliver?.();
      this.#next();
    });
  }
}
