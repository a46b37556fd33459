/** The listeners of a run beside its log: the program's functions and sinks, the recipe's sinks, trackers. */
import { basename } from 'node:path';
import type { MetricSink } from '@drmas/engine/events';
import {
  type EventSink,
  listenersTogether,
  type PlayProgress,
  progressListener,
  type RunListener,
} from '@drmas/engine/host';
import { type Recipe, recipeJson } from '../../method/recipe.js';
import type { RunDirectory } from '../../method/store.js';
import { GuardedListener } from '../trackers/guarded-listener.js';
import { type RequestedTracker, requestedTrackers } from '../trackers/index.js';

export interface ListenerOptions {
  /**
   * Receive every event after it was logged; events from before a resumed run's first step, at once. drmas calls
   * `write` synchronously, inside the run. It calls `event` through a queue: a sink with `event` may fail or be slow,
   * and the run continues.
   */
  readonly sinks?: readonly (MetricSink | EventSink)[];
  /** Trackers as on the command line: `tensorboard`, `mlflow=http://127.0.0.1:5000`, `otel`. */
  readonly track?: readonly string[];
}

export interface ListenerFunctions {
  /** Receives notices for people, which the event log need not keep. */
  readonly onNotice?: ((message: string) => void) | undefined;
  readonly onProgress?: ((progress: PlayProgress) => void) | undefined;
}

export function functionsListener({ onNotice, onProgress }: ListenerFunctions): RunListener {
  return {
    ...(onNotice && { notice: onNotice }),
    ...(onProgress && progressListener(onProgress)),
  };
}

export class RunListeners {
  /** All of them as one; sinks of the recipe and trackers join when they are added and opened. */
  readonly together: RunListener;
  readonly #all: RunListener[];
  readonly #trackers: readonly RequestedTracker[];

  /**
   * @param first Called inside the run, before all others
   * @throws RecipeError for an unknown tracker
   */
  constructor(first: readonly RunListener[], { sinks = [], track = [] }: ListenerOptions = {}) {
    this.#trackers = requestedTrackers(track);
    this.#all = [...first];
    this.together = listenersTogether(this.#all);
    for (const [i, sink] of sinks.entries()) {
      if ('write' in sink) this.#all.push({ event: (event) => sink.write(event) });
      else this.#guard(sink, `sink ${i + 1} of the program`);
    }
  }

  readonly notify = (message: string): void => {
    this.together.notice?.(message);
  };

  addSinks({ sinks = [] }: Recipe): void {
    for (const [i, sink] of sinks.entries()) this.#guard(sink, `sink ${i + 1} of the recipe`);
  }

  /** Opens the trackers, which get the events of the log so far. @throws RunError */
  async openTrackers(recipe: Recipe, run: RunDirectory): Promise<void> {
    const trackers = [
      ...recipe.lists.ownTrackers.map((declaration) => ({ declaration, address: '' })),
      ...this.#trackers,
    ];
    if (trackers.length === 0) return;
    const tracked = {
      path: run.path,
      name: basename(run.path),
      recipe: recipe.name,
      settings: recipeJson(recipe),
      events: await run.events(),
      acceptedChanges: run.record.acceptedChanges.length,
      environment: process.env,
    };
    for (const { declaration, address } of trackers)
      this.#guard(await declaration.open(tracked, address), declaration.name);
  }

  /** Waits until all listeners have every event, and closes them. */
  async close(): Promise<void> {
    await this.together.close?.();
  }

  #guard(listener: RunListener, name: string): void {
    this.#all.push(new GuardedListener(listener, name, this.notify));
  }
}
