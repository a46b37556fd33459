/** Starts a run in its directory: the one way for new runs, resumed runs and the runs of an ablation. */
import type { RunEvent } from '@drmas/engine/events';
import type { Host } from '@drmas/engine/host';
import type { Recipe } from '../../../method/recipe.js';
import type { RunDirectory } from '../../../method/store.js';
import type { RunListeners } from '../run-listeners.js';
import { evaluateCheckpoint } from './evaluate-run.js';
import { type ExecutionOptions, executeRun } from './execute-run.js';
import { requireKernels } from './resume-run.js';

/** The place where runs are executed: this process, or a cluster. */
export interface RunPlace {
  readonly requireKernels: typeof requireKernels;
  readonly executeRun: typeof executeRun;
  readonly evaluateCheckpoint: typeof evaluateCheckpoint;
}

export const thisProcess: RunPlace = { requireKernels, executeRun, evaluateCheckpoint };

export interface PreparedRun extends ExecutionOptions {
  readonly recipe: Recipe;
  /** Receives the events so far, before the run is executed. */
  readonly onReady?: (events: readonly RunEvent[]) => void;
}

export interface RunSurroundings {
  readonly place: RunPlace;
  readonly host: Host;
  readonly listeners: RunListeners;
}

/**
 * Locks the run's directory, prepares the run, opens its listeners and executes it. The trackers of a resumed run are
 * opened when it begins to change files. Closes listeners and directory, however the run ends.
 * @param prepare Is called when the directory is locked; may rewind the log to a checkpoint
 * @throws RunError with the process that writes the run; the errors of `prepare` and the execution
 */
export async function startRun(
  log: RunDirectory,
  { place, host, listeners }: RunSurroundings,
  prepare: () => Promise<PreparedRun>,
): Promise<void> {
  const unguarded = await log.lock();
  try {
    if (unguarded !== undefined) host.notify(unguarded);
    const { recipe, onReady, ...options } = await prepare();
    listeners.addSinks(recipe);
    // A resume may be refused until it begins: trackers must not show it before.
    await log.beforeBegin(() => listeners.openTrackers(recipe, log));
    onReady?.(await log.events());
    await place.executeRun(recipe, log, { ...host, listener: listeners.together }, options);
  } finally {
    await listeners.close();
    await log.close();
  }
}
