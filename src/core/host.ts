import type { Clock } from './clock.js';
import type { Files, SharedDirectories } from './files.js';
import type { PlayObserver } from './play/play-observer.js';

/** The machine and the program around a piece of work. It is made once and passed on unchanged. */
export interface Host {
  /** Threads of the engine's kernels, at least 1. */
  readonly threads: number;
  /** What the engine of this process computes on, whatever a recipe says. */
  readonly device?: 'cpu' | 'gpu' | undefined;
  readonly files: Files;
  readonly clock: Clock;
  /** Fires when the work is to stop. */
  readonly signal: AbortSignal;
  /** Does work that must not be cut short once the signal has fired, such as writing a checkpoint. */
  readonly protect: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Receives what takes long and what a person should know; no event log keeps it. */
  readonly notify: (message: string) => void;
  /** Receives what went wrong and was put right; an event log keeps it where there is one. */
  readonly warn: (code: string, message: string) => void;
  /** What other machines have computed already, and get from this one. */
  readonly shared?: SharedDirectories | undefined;
  /** Is told what is being played, while it is played. */
  readonly observer?: PlayObserver | undefined;
}
