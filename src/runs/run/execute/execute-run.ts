/** One execution of a recipe in a run directory: from its beginning or from a checkpoint to the run's last event. */
import type { RunFinished } from '@drmas/engine/events';
import type { Host } from '@drmas/engine/host';
import { commitsOf, saveCheckpoint } from '../../../method/checkpoints.js';
import { goesOnAfter, type Tasks, trainTeam } from '../../../method/index.js';
import type { Recipe } from '../../../method/recipe.js';
import type { Checkpoint, RunDirectory } from '../../../method/store.js';
import type { OpenBackend } from '../open/open-backends.js';
import { prepareTasks } from '../open/prepare-tasks.js';
import { beginRun, failureOf, type StartedRun } from './begin-run.js';
import { resumeRun } from './resume-run.js';

export interface ExecutionOptions {
  /** The checkpoint to resume from; `rewind` of the log must have been called for it. Without it, the run begins. */
  readonly checkpoint?: Checkpoint | undefined;
  /** The tasks, if `prepareTasks` was called before. */
  readonly tasks?: Tasks | undefined;
  /** Continue although other kernels compute than at the start of the run. */
  readonly acceptChanges?: boolean | undefined;
  readonly openBackend?: OpenBackend | undefined;
}

/**
 * Trains to the recipe's last step. An interruption writes a checkpoint once reinforcement has begun, that is after the
 * warm start. Every ending writes `run.finished`, except that an attempt to resume which does not reach its first step
 * leaves all files as they were.
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
    const commits = tasks === undefined ? await commitsOf(host.files, checkpoint) : {};
    const prepared = tasks ?? (await prepareTasks(recipe, undefined, { ...host, commits }));
    const request = { recipe, tasks: prepared, log, host, openBackend };
    started = checkpoint === undefined ? await beginRun(request) : await resumeRun(request, checkpoint, acceptChanges);
    await log.begin();
    await trainTeam(started.run, started.progress, log);
    finish('completed');
  } catch (error) {
    if (!log.begun) throw signal.aborted ? signal.reason : error; // the files are as they were before the attempt
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
