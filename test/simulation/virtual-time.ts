/** Time that passes as fast as the work of a simulation goes: timers fire in order as soon as nothing else can run. */

import type { Clock } from '@drmas/engine/host';
import fakeTimers, { type Clock as FakeClock } from '@sinonjs/fake-timers';
import { takesTime } from '../support/time-and-chance.js';

/** Raised when the work waits for something that can never come. */
export class StuckError extends Error {}

const macrotask = globalThis.setImmediate;

export class VirtualTime implements Clock {
  readonly #timers: FakeClock;

  /** Takes over the timers of this process until `restore`. */
  constructor() {
    const toFake = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate'];
    this.#timers = fakeTimers.install({ now: 0, toFake: toFake as never });
  }

  restore(): void {
    this.#timers.uninstall();
  }

  seconds(): number {
    return this.#timers.now / 1000;
  }

  now(): Date {
    return new Date(this.#timers.now);
  }

  /** The number of timers that wait. */
  get waiting(): number {
    return this.#timers.countTimers();
  }

  /** Forgets every timer, as the end of a process does. */
  forget(): void {
    this.#timers.reset();
  }

  sleep(milliseconds: number): Promise<void> {
    return takesTime(milliseconds);
  }

  /**
   * Lets time pass until the work has settled, or until `ended` is true because its process is gone.
   * @throws StuckError when neither comes and no timer waits
   */
  async passUntilSettled(work: Promise<unknown>, ended: () => boolean): Promise<void> {
    let settled = false;
    const done = () => {
      settled = true;
    };
    work.then(done, done);
    for (;;) {
      await new Promise<void>((resolve) => macrotask(resolve)); // every microtask comes first
      if (settled || ended()) return;
      if (this.waiting === 0) throw new StuckError('nothing can happen any more, and the work has not ended');
      this.#timers.next();
    }
  }
}
