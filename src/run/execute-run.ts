/** One execution of a recipe in a run directory: from its beginning or from a checkpoint to the run's last event. */
import type { RunFinished } from '../core/events.js';
import type { Host } from '../core/host.js';
import type { Recipe } from '../recipe/recipe.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import type { RunDirectory } from '../store/run-directory.js';
import { saveCheckpoint } from '../training/checkpoint.js';
import type { Tasks } from '../training/run-state.js';
import { goesOnAfter } from '../training/step/rollouts-ahead.js';
import { trainTeam } from '../training/train.js';
import { beginRun, failureOf, type StartedRun } from './begin-run.js';
import type { OpenBackend } from './open-backends.js';
import { prepareTasks } from './open-run.js';
import { KernelError, resumeRun } from './resume-run.js';

export interface ExecutionOptions {
  /** Where the run goes on; the log must have been rewound to it. Without one the run begins. */
  readonly checkpoint?: Checkpoint | undefined;
  /** The tasks, where `prepareTasks` was called before. */
  readonly tasks?: Tasks | undefined;
  /** Go on although other kernels compute than those that began the run. */
  readonly acceptChanges?: boolean | undefined;
  /** Starts a backend that the recipe names. */
  readonly openBackend?: OpenBackend | undefined;
}

/**
 * Trains to the recipe's last step. An interruption writes a checkpoint once reinforcement has begun, that is after the
 * warm start. Every ending writes `run.finished`.
 * @throws the signal's reason when interrupted; TrainingError, BackendError and others when the run fails
 */
export async function executeRun(
  recipe: Recipe,
  log: RunDirectory,
  machine: Host,
  { checkpoint, tasks, acceptChanges, openBackend }: ExecutionOptions = {},
): Promise<void> {
  const warn = (code: string, message: string) => void log.emit({ type: 'warning', code, message });
  const host = { ...machine, warn };
  const { clock, signal } = host;
  const began = clock.seconds();
  let started: StartedRun | undefined;
  const finish = (reason: RunFinished['reason']) => {
    const steps = started?.progress.step ?? 0;
    log.emit({ type: 'run.finished', reason, steps, seconds: clock.seconds() - began });
  };
  try {
    const request = { recipe, tasks: tasks ?? (await prepareTasks(recipe)), log, host, openBackend };
    started = checkpoint === undefined ? await beginRun(request) : await resumeRun(request, checkpoint, acceptChanges);
    await trainTeam(started.run, started.progress, log);
    finish('completed');
  } catch (error) {
    if (error instanceof KernelError) throw error; // nothing was begun
    try {
      if (signal.aborted && started !== undefined && goesOnAfter(recipe, started.progress.step))
        await saveCheckpoint(started.run, started.progress, log, { interrupted: true });
    } finally {
      finish(signal.aborted ? 'stopped' : 'failed');
    }
    if (signal.aborted) throw signal.reason;
    throw started === undefined ? error : failureOf(error);
  } finally {
    await started?.run.dispose();
  }
}
