import type { RunEvent } from '../events.js';

/**
 * A receiver of a run's events that may be slow or fail: it stands behind a queue, and neither ends nor slows the run.
 * It is told every event, one after another, as a copy of its own.
 */
export interface EventSink {
  /** Names it in warnings. */
  readonly name?: string;
  event(event: RunEvent): void | Promise<void>;
  /** The run has ended: no more events come. */
  close?(): void | Promise<void>;
}
