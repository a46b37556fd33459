import { messageOf } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { type BegunEpisode, type EpisodeListener, type Round, type RunListener, waitMs } from '@drmas/engine/host';

/** The most events in the queue of a slow listener; later events are dropped. */
const MOST_WAITING = 10_000;
const CLOSE_TIMEOUT_MS = 10_000;

/**
 * A listener that can neither end nor slow down the run. Events wait in a bounded queue, each as a copy. The first
 * error is reported with the listener's name; the run continues.
 */
export class GuardedListener implements RunListener {
  readonly #listener: RunListener;
  readonly #name: string;
  readonly #notify: (message: string) => void;
  readonly #waiting: RunEvent[] = [];
  #work: Promise<void> | undefined;
  #failed = false;
  #left = 0;
  /** Whether the run has ended without the listener. */
  #late = false;

  /** @param name For warnings, if the listener has no name */
  constructor(listener: RunListener, name: string, notify: (message: string) => void) {
    this.#listener = listener;
    this.#name = listener.name ?? name;
    this.#notify = notify;
  }

  event(event: RunEvent): void {
    if (this.#listener.event === undefined || this.#late) return;
    if (this.#waiting.length >= MOST_WAITING) {
      if (this.#left++ === 0) this.#notify(`${this.#name} is too slow: drmas drops events`);
      return;
    }
    this.#waiting.push(structuredClone(event));
    this.#work ??= this.#drain();
  }

  round(round: Round): void {
    this.#attempt(() => this.#listener.round?.(round));
  }

  episode(begun: BegunEpisode): EpisodeListener | undefined {
    const heard = this.#attempt(() => this.#listener.episode?.(begun));
    if (heard === undefined) return undefined;
    return {
      ...(heard.within && { within: (run) => this.#within(heard, run) }),
      ...(heard.answered && { answered: (turn, time) => this.#attempt(() => heard.answered?.(turn, time)) }),
      ended: (episode) => this.#attempt(() => heard.ended?.(episode)),
    };
  }

  /**
   * Waits until the listener has every event, and closes it. Waits at most `timeoutMs`: then drops the events in the
   * queue, so that they do not keep the process alive. The listener is closed when it has handled its present event.
   */
  async close(timeoutMs = CLOSE_TIMEOUT_MS): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, waitMs(timeoutMs), 'late');
    });
    const closed = (async () => {
      await this.#work;
      await this.#awaited(() => this.#listener.close?.());
    })();
    if ((await Promise.race([closed, late])) === 'late') {
      this.#late = true;
      const { length } = this.#waiting.splice(0);
      this.#notify(`${this.#name} is too slow: the run ends without it, and ${length} events are dropped`);
    }
    clearTimeout(timer);
  }

  async #drain(): Promise<void> {
    await null; // the listener's code never runs inside the run's own call
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
      const next = event;
      await this.#awaited(() => this.#listener.event?.(next));
    }
    this.#work = undefined;
  }

  /** Runs the team's code once, even if the listener fails or does not call it. */
  #within<T>(heard: EpisodeListener, run: () => T): T {
    let begun = false;
    const once = () => {
      begun = true;
      return run();
    };
    try {
      return heard.within === undefined ? run() : heard.within(once);
    } catch (error) {
      if (begun) throw error; // an error of the team
      this.#fail(error);
      return run();
    }
  }

  #attempt<T>(act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  async #awaited(act: () => void | Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (!this.#failed) this.#notify(`${this.#name} failed, and the run continues: ${messageOf(error)}`);
    this.#failed = true;
  }
}
