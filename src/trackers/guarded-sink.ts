import { messageOf } from '../core/errors.js';
import type { MetricSink, RunEvent } from '../core/events.js';
import type { EventSink } from '../core/play/event-sink.js';

/** Events that may wait for a slow sink; more are left out. */
const MOST_WAITING = 10_000;
/** How long the end of a run waits for a sink. */
const CLOSE_TIMEOUT_MS = 10_000;

/** A sink behind a bounded queue. What it throws, and that it is too slow, is said once, by its name. */
export class GuardedSink implements MetricSink {
  readonly #sink: EventSink;
  readonly #name: string;
  readonly #notify: (message: string) => void;
  readonly #waiting: RunEvent[] = [];
  #work: Promise<void> | undefined;
  #failed = false;
  #left = 0;

  /** @param name for warnings, where the sink has none */
  constructor(sink: EventSink, name: string, notify: (message: string) => void) {
    this.#sink = sink;
    this.#name = sink.name ?? name;
    this.#notify = notify;
  }

  write(event: RunEvent): void {
    if (this.#waiting.length >= MOST_WAITING) {
      if (this.#left++ === 0) this.#notify(`${this.#name} is too slow: events are left out`);
      return;
    }
    this.#waiting.push(structuredClone(event));
    this.#work ??= this.#drain();
  }

  /** Waits until the sink has every event, and closes it; no longer than `timeoutMs`. */
  async close(timeoutMs = CLOSE_TIMEOUT_MS): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, timeoutMs, 'late');
    });
    const closed = (async () => {
      await this.#work;
      await this.#attempt(() => this.#sink.close?.());
    })();
    if ((await Promise.race([closed, late])) === 'late')
      this.#notify(`${this.#name} is too slow: the run ends without it, ${this.#waiting.length} events are left out`);
    clearTimeout(timer);
  }

  /** Says once that the sink failed. */
  failed(error: unknown): void {
    if (!this.#failed) this.#notify(`${this.#name} failed, and the run goes on: ${messageOf(error)}`);
    this.#failed = true;
  }

  async #drain(): Promise<void> {
    await null; // nothing of the sink runs inside the run's own call
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
      const next = event;
      await this.#attempt(() => this.#sink.event(next));
    }
    this.#work = undefined;
  }

  async #attempt(act: () => void | Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.failed(error);
    }
  }
}
