/** How long the code of a thread has kept others from running, without the time in which it got no processor. */
import { readFileSync, readlinkSync } from 'node:fs';

/** The parts of a silence, in milliseconds. */
interface Silence {
  /** The turns of the watchdog's own timer. Fewer pass if the whole process stands still, in a suspended laptop too. */
  readonly ticks: number;
  readonly clock: number;
  /** The time that the watched thread waited for a processor. Undefined if the system does not tell. */
  readonly waited: number | undefined;
  readonly processor: number;
}

/** The least share of a silence that counts if the system does not tell how long the thread waited for a processor. */
const LEAST_SHARE = 0.25;

/**
 * How long the code of the watched thread has kept others from running. On a busy machine the thread may be silent
 * because it gets no processor: that time does not count. If the system does not tell it, the processor time counts. A
 * call that sleeps needs none, so a part of the silence always counts.
 */
export function heldMs({ ticks, clock, waited, processor }: Silence): number {
  if (waited !== undefined) return Math.max(0, Math.min(ticks, clock - waited));
  return Math.max(LEAST_SHARE * ticks, Math.min(ticks, processor));
}

/** The number of the thread that asks, as the system knows it. 0 if the system does not tell. */
export function ownThread(): number {
  try {
    return Number(/\d+$/.exec(readlinkSync('/proc/thread-self'))?.[0] ?? 0);
  } catch {
    return 0;
  }
}

export class HeldTime {
  readonly #thread: () => number;
  #clock = performance.now();
  #processor = process.cpuUsage();
  #waited: number | undefined;

  /** @param thread The number of the thread. 0 while it is not known */
  constructor(thread: () => number) {
    this.#thread = thread;
    this.#waited = waitedMs(thread());
  }

  restart(): void {
    this.#clock = performance.now();
    this.#waited = waitedMs(this.#thread());
    this.#processor = process.cpuUsage();
  }

  /** How long the thread has kept others from running. @param ticks The silence by the watcher's own timer */
  ms(ticks: number): number {
    const waited = waitedMs(this.#thread());
    const { user, system } = process.cpuUsage(this.#processor);
    return heldMs({
      ticks,
      clock: performance.now() - this.#clock,
      waited: waited === undefined || this.#waited === undefined ? undefined : waited - this.#waited,
      processor: (user + system) / 1e3,
    });
  }
}

/** The time that a thread of this process has waited for a processor. Only Linux tells it. */
function waitedMs(thread: number): number | undefined {
  try {
    const [, nanoseconds] = readFileSync(`/proc/self/task/${thread}/schedstat`, 'utf8').split(' ');
    const waited = Number(nanoseconds) / 1e6;
    return waited > 0 ? waited : undefined; // some containers only show zeros
  } catch {
    return undefined;
  }
}
