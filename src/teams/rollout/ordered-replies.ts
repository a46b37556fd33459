import { macrotask } from '../../base/async.js';

/**
 * Delivers the results of concurrent work in the order in which the work began, each in a separate macrotask. The
 * team's code has reacted to one reply (with further calls, for instance) before the next arrives. The order of an
 * episode's calls therefore depends only on that code, and not on which generation was ready first.
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

  /** Stops the delivery: no result is delivered afterwards. */
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
