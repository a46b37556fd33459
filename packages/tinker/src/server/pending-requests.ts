/** Results that clients fetch later. Each is kept for a time after it was fetched. */
import { randomUUID } from 'node:crypto';
import { DialectError } from '@drmas/engine/errors';

/** Time that a fetched result is kept, because it may be lost on its way to the client. */
const KEPT_AFTER_FETCH_MS = 120_000;
/** Time that a result is kept for a client that does not fetch it. */
const KEPT_MS = 3_600_000;
const SWEEP_MS = 10_000;
/** So many results are kept at least; older ones are dropped, so that clients that fetch none take no memory. */
const MOST_KEPT = 4096;
/** Clients ask for their results again and again. After this time without a request, none of them is there. */
const ABANDONED_MS = 5000;

interface Future {
  readonly outcome: Promise<Outcome>;
  settled: boolean;
  /** The time when it may be removed, on the clock of `performance`. */
  until: number;
}

export type Outcome = PromiseSettledResult<unknown>;

export class Futures {
  readonly #futures = new Map<string, Future>();
  readonly #most: number;
  /** The ids of results, the oldest first. */
  readonly #settled: string[] = [];
  #pending = 0;
  #swept = 0;
  /** Requests for results that wait now, and the time of the last one. */
  #waiting = 0;
  #lastPoll = 0;

  /** @param most The most requests in progress */
  constructor(most: number) {
    this.#most = most;
  }

  get pending(): number {
    return this.#pending;
  }

  /** Accepts work and gives it a number. @throws DialectError 429 when too many requests are in progress */
  add(work: () => Promise<unknown>): string {
    this.#sweep();
    if (this.pending >= this.#most)
      throw new DialectError(429, 'busy', `${this.#most} requests are already in progress; try again later`);
    const id = randomUUID();
    const future: Future = {
      outcome: Promise.allSettled([work()]).then(([outcome]) => outcome),
      settled: false,
      until: performance.now() + KEPT_MS,
    };
    this.#pending++;
    void future.outcome.then(() => {
      future.settled = true;
      this.#pending--;
      this.#keep(id);
    });
    this.#futures.set(id, future);
    return id;
  }

  /** Waits no longer than its client is there. @throws DialectError 404 for a number that is not known (any more) */
  async fetch(id: string, timeoutMs: number, gone?: AbortSignal): Promise<Outcome | 'pending'> {
    const future = this.#futures.get(id);
    if (future === undefined) throw new DialectError(404, 'unknown_future', 'Future not found');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'pending'>((resolve) => {
      timer = setTimeout(() => resolve('pending'), timeoutMs);
      gone?.addEventListener('abort', () => resolve('pending'), { once: true });
    });
    this.#waiting++;
    const outcome = await Promise.race([future.outcome, late]).finally(() => {
      clearTimeout(timer);
      this.#waiting--;
      this.#lastPoll = performance.now();
    });
    const keep = outcome === 'pending' ? KEPT_MS : KEPT_AFTER_FETCH_MS;
    future.until = performance.now() + keep;
    return outcome;
  }

  /** Resolves when no request is in progress, or when no client asks for results any more. */
  async idle(abandonedMs = ABANDONED_MS): Promise<void> {
    const all = Promise.all(Array.from(this.#futures.values(), ({ outcome }) => outcome));
    this.#lastPoll = Math.max(this.#lastPoll, performance.now());
    let timer: NodeJS.Timeout | undefined;
    const abandoned = new Promise<void>((resolve) => {
      const check = () => this.#waiting === 0 && performance.now() - this.#lastPoll > abandonedMs && resolve();
      timer = setInterval(check, abandonedMs / 10);
    });
    await Promise.race([all, abandoned]).finally(() => clearInterval(timer));
  }

  #keep(id: string): void {
    this.#settled.push(id);
    if (this.#settled.length <= 2 * MOST_KEPT) return;
    for (const old of this.#settled.splice(0, MOST_KEPT)) this.#futures.delete(old);
  }

  #sweep(): void {
    const now = performance.now();
    if (now - this.#swept < SWEEP_MS) return;
    this.#swept = now;
    for (const [id, { settled, until }] of this.#futures) if (settled && until < now) this.#futures.delete(id);
  }
}
