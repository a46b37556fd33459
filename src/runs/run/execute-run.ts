/** One execution of a recipe in a run directory: from its beginning or from a checkpoint to the run's last event. */
import type { RunFinished } from '../../base/events.js';
import type { Host } from '../../base/host.js';
import { saveCheckpoint } from '../../method/checkpoints.js';
import type { Tasks } from '../../method/index.js';
import { goesOnAfter, trainTeam } from '../../method/index.js';
import type { Recipe } from '../../method/recipe.js';
import type { Checkpoint, RunDirectory } from '../../method/store.js';
import { beginRun, failureOf, type StartedRun } from './begin-run.js';
import type { OpenBackend } from './open-backends.js';
import { prepareTasks } from './open-run.js';
import { KernelError, resumeRun } from './resume-run.js';

export interface ExecutionOptions {
  /** The checkpoint to resume from; the log must have been rewound to it. Without a checkpoint, the run begins. */
  readonly checkpoint?: Checkpoint | undefined;
  /** The tasks, if `prepareTasks` was called before. */
  readonly tasks?: Tasks | undefined;
  /** Continue although other kernels compute than at the start of the run. */
  readonly acceptChanges?: boolean | undefined;
  /** Starts a backend of the recipe. */
  readonly openBackend?: OpenBackend | undefined;
}

/**
 * Trains to the recipe's last step. An interruption writes a checkpoint once reinforcement has begun, that is after the
 * warm start. Every ending writes `run.finished`.
 * @throws The signal's reason when interrupted; TrainingError, BackendError and others when the run fails
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
    if (error instanceof KernelError) throw error; // nothing was started
    try {
      if (signal.aborted && started !== undefined && goesOnAfter(started.run, started.progress.step))
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
