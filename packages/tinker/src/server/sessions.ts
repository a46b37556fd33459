/** The sessions of clients. A session ends some time after its last request. */
import { randomUUID } from 'node:crypto';
import { DialectError } from '@drmas/engine/errors';
import { waitMs } from '@drmas/engine/host';

const MOST_SESSIONS = 4096;

export class Sessions {
  /** The time of the last heartbeat or request, on the clock of `performance`. */
  readonly #heard = new Map<string, number>();
  readonly #sweep: NodeJS.Timeout;

  /** @param onEnd Receives each session that has ended */
  constructor(idleSeconds: number, onEnd: (session: string) => void) {
    const endIdle = () => {
      for (const [session, heard] of this.#heard) {
        if (performance.now() - heard < 1000 * idleSeconds) continue;
        this.#heard.delete(session);
        onEnd(session);
      }
    };
    this.#sweep = setInterval(endIdle, waitMs(250 * idleSeconds)).unref();
  }

  /** @throws DialectError 429 when there are too many sessions */
  open(): string {
    if (this.#heard.size >= MOST_SESSIONS)
      throw new DialectError(429, 'busy', `there are already ${MOST_SESSIONS} sessions; try again later`);
    const id = `session_${randomUUID()}`;
    this.hear(id);
    return id;
  }

  /** A request of the session, or of a model of it. */
  hear(session: string): void {
    this.#heard.set(session, performance.now());
  }

  /** @throws DialectError 404 for a session that has ended */
  heartbeat(session: string): void {
    if (!this.#heard.has(session)) throw new DialectError(404, 'unknown_session', 'Session not found');
    this.hear(session);
  }

  close(): void {
    clearInterval(this.#sweep);
  }
}
