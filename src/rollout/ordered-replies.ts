/**
 * Hands over the results of concurrent work in the order in which it was begun, each in a macrotask of its own. Whatever
 * an agent's reply sets off (further calls, say) has been set off before the next reply arrives, so the order of an
 * episode's calls depends on the team's code alone and never on which generation was ready first.
 */
export class OrderedReplies {
  readonly #waiting: { handOver?: () => void }[] = [];
  readonly #schedule: (task: () => void) => void;
  #scheduled = false;
  #stopped = false;

  constructor(schedule = macrotask) {
    this.#schedule = schedule;
  }

  /** Calls `receive` once `work` has settled and everything added before has been handed over. */
  add<T>(work: Promise<T>, receive: (result: PromiseSettledResult<T>) => void): void {
    if (this.#stopped) return;
    const entry: { handOver?: () => void } = {};
    this.#waiting.push(entry);
    const settle = (result: PromiseSettledResult<T>) => {
      entry.handOver = () => receive(result);
      this.#next();
    };
    work.then(
      (value) => settle({ status: 'fulfilled', value }),
      (reason) => settle({ status: 'rejected', reason }),
    );
  }

  /** From now on nothing is handed over. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.length = 0;
  }

  #next(): void {
    if (this.#scheduled || this.#waiting[0]?.handOver === undefined) return;
    this.#scheduled = true;
    this.#schedule(() => {
      this.#scheduled = false;
      this.#waiting.shift()?.handOver?.();
      this.#next();
    });
  }
}

/** `setImmediate` where there is one (Node), else `setTimeout` (browsers). Both let every microtask finish first. */
const macrotask = (task: () => void): void => {
  if (typeof globalThis.setImmediate === 'function') globalThis.setImmediate(task);
  else setTimeout(task, 0);
};
