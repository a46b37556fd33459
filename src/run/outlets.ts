/** Where the events of a run go beside its log: sinks of a program, those of the recipe, trackers. */
import { basename } from 'node:path';
import type { MetricSink } from '../core/events.js';
import type { Host } from '../core/host.js';
import type { EventSink } from '../core/play/event-sink.js';
import { observersTogether, type PlayObserver } from '../core/play/play-observer.js';
import { type Recipe, recipeJson } from '../recipe/recipe.js';
import type { RunDirectory } from '../store/run-directory.js';
import { guardedObserver } from '../trackers/guarded-observer.js';
import { GuardedSink } from '../trackers/guarded-sink.js';
import { type RequestedTracker, requestedTrackers } from '../trackers/index.js';

export interface OutletOptions {
  /**
   * Receive every event after it was logged: those with `write` at once, inside the run; those with `event` behind a
   * queue, so that what they throw, and how slow they are, is no matter of the run.
   */
  readonly sinks?: readonly (MetricSink | EventSink)[];
  /** Trackers as on the command line: `tensorboard`, `mlflow=http://127.0.0.1:5000`, `otel`. */
  readonly track?: readonly string[];
}

export class Outlets {
  /** What the log writes to. Sinks of the recipe and trackers join it when they are opened. */
  readonly sinks: MetricSink[] = [];
  readonly #guarded: GuardedSink[] = [];
  readonly #observers: PlayObserver[] = [];
  readonly #trackers: readonly RequestedTracker[];
  readonly #notify: (message: string) => void;

  /** @throws RecipeError for a tracker that there is not */
  constructor({ sinks = [], track = [] }: OutletOptions, notify: (message: string) => void) {
    this.#trackers = requestedTrackers(track);
    this.#notify = notify;
    for (const [i, sink] of sinks.entries()) {
      if ('write' in sink) this.sinks.push(sink);
      else this.#add(sink, `sink ${i + 1} of the program`);
    }
  }

  /** Opens what the recipe names and the trackers, which get what the log holds already. @throws RunError */
  async open(recipe: Recipe, run: RunDirectory): Promise<void> {
    for (const [i, sink] of (recipe.sinks ?? []).entries()) this.#add(sink, `sink ${i + 1} of the recipe`);
    if (this.#trackers.length === 0) return;
    const tracked = {
      path: run.path,
      name: basename(run.path),
      recipe: recipe.name,
      settings: recipeJson(recipe),
      events: await run.events(),
      environment: process.env,
    };
    for (const { declaration, address } of this.#trackers) {
      const tracker = await declaration.open(tracked, address);
      const guarded = this.#add(tracker, declaration.name);
      if (tracker.observer !== undefined)
        this.#observers.push(guardedObserver(tracker.observer, (error) => guarded.failed(error)));
    }
  }

  /** The host with those as observers too who were opened. */
  observing(host: Host): Host {
    if (this.#observers.length === 0) return host;
    const { observer } = host;
    return {
      ...host,
      observer: observersTogether([...(observer === undefined ? [] : [observer]), ...this.#observers]),
    };
  }

  /** Waits until all have what they were told, and closes them. */
  async close(): Promise<void> {
    await Promise.all(this.#guarded.map((sink) => sink.close()));
  }

  #add(sink: EventSink, name: string): GuardedSink {
    const guarded = new GuardedSink(sink, name, this.#notify);
    this.#guarded.push(guarded);
    this.sinks.push(guarded);
    return guarded;
  }
}
