import type { RunEvent } from '../core/events.js';
import type { EventSink } from '../core/play/event-sink.js';
import type { PlayObserver } from '../core/play/play-observer.js';

/** A run as a tracker sees it before the first event that it is told. */
export interface TrackedRun {
  /** The run's directory. */
  readonly path: string;
  /** The name of the directory. */
  readonly name: string;
  readonly recipe: string;
  /** The resolved recipe as recipe.json has it, without secrets. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** What the log holds already, of a run that goes on. */
  readonly events: readonly RunEvent[];
  readonly environment: NodeJS.ProcessEnv;
}

/** What a tracker listens with. */
export interface OpenTracker extends EventSink {
  /** Is told what is being played while it is played. */
  readonly observer?: PlayObserver;
}

/** A kind of tracker: all that the command line and the documents know about it. */
export interface TrackerDeclaration {
  /** As it is typed after `--track`. */
  readonly name: string;
  /** Whether an address follows, as in `mlflow=URL`. */
  readonly address: 'none' | 'url';
  /** A sentence for the documents. */
  readonly description: string;
  /** @throws RunError when it cannot be reached or written, before anything is played */
  open(run: TrackedRun, address: string): Promise<OpenTracker>;
}

export function defineTracker<const Declaration extends TrackerDeclaration>(declaration: Declaration): Declaration {
  return declaration;
}
