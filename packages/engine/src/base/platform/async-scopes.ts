/** Finds the piece of work that running code belongs to, and gives that work the errors that no code awaits. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import { EpisodeOverError } from '../core/errors.js';

/** A piece of work that answers for the errors of the code that it runs. */
export interface Scope {
  /** For messages. */
  readonly name: string;
  /** Fires when the work is over. Any number of calls may listen. */
  readonly signal: AbortSignal;
  /** Receives an error of this work that no code awaited: a rejection, or an error in a timer's callback. */
  stray(error: unknown): void;
}

const current = new AsyncLocalStorage<Scope>();
let listening = false;

/**
 * Runs code in a scope; timers, promises and callbacks that it starts belong to the scope too, also after the work is
 * over.
 */
export function runInScope<T>(scope: Scope, run: () => T): T {
  listen();
  setMaxListeners(0, scope.signal); // Node would warn of a leak at the eleventh concurrent call
  return current.run(scope, run);
}

/** The scope of the running code; undefined outside, and if a queue or an emitter made the code lose it. */
export function currentScope(): Scope | undefined {
  return current.getStore();
}

/**
 * Without a listener the first such error ends the process. Errors outside a scope still end it, unless the program has
 * listeners of its own.
 */
function listen(): void {
  if (listening) return;
  listening = true;
  process.on('unhandledRejection', strayRejection);
  process.on('uncaughtException', strayException);
  const { queueMicrotask } = globalThis;
  globalThis.queueMicrotask = (callback) => queueMicrotask(guarded(callback));
}

/** A callback whose error goes to its scope: Node reports an error of `queueMicrotask` without its context. */
function guarded(callback: () => void): () => void {
  const scope = current.getStore();
  if (scope === undefined || typeof callback !== 'function') return callback;
  return () => {
    try {
      callback();
    } catch (error) {
      scope.stray(error);
    }
  };
}

function strayRejection(reason: unknown): void {
  const scope = current.getStore();
  if (scope !== undefined) scope.stray(reason);
  else if (reason instanceof EpisodeOverError)
    return; // the work that it belonged to is over, whichever it was
  else if (process.listenerCount('unhandledRejection') === 1) throw reason;
}

function strayException(error: unknown): void {
  const scope = current.getStore();
  if (scope !== undefined) scope.stray(error);
  else if (process.listenerCount('uncaughtException') === 1) {
    process.off('uncaughtException', strayException);
    setImmediate(() => {
      throw error;
    });
  }
}
