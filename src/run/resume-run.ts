import { join } from 'node:path';
import type { Hardware } from '../contract/capabilities.js';
import { RunError } from '../core/errors.js';
import type { RunEvent, RunStarted } from '../core/events.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import type { RunDirectory } from '../store/run-directory.js';
import { REFERENCES } from '../store/run-files.js';
import { commitsOf, loadCheckpoint } from '../training/checkpoint.js';
import type { OpenRun } from '../training/run-state.js';
import { openCritics } from '../training/update/critics.js';
import { openReferences } from '../training/update/references.js';
import type { RunRequest, StartedRun } from './begin-run.js';
import { openRun, publishAll } from './open-run.js';

/** Raised when a run would go on with kernels that round otherwise than those that began it. Nothing was changed. */
export class KernelError extends RunError {}

/**
 * Opens a run as its checkpoint left it.
 * @throws CheckpointError; KernelError unless changes are accepted, which is then a warning in the log
 */
export async function resumeRun(
  { recipe, tasks, log, host, openBackend }: RunRequest,
  checkpoint: Checkpoint,
  acceptChanges = false,
): Promise<StartedRun> {
  const commits = await commitsOf(host.files, checkpoint);
  const run = await openRun(recipe, tasks, host, { commits, openBackend });
  try {
    const others = await otherKernels(log, run);
    if (others !== undefined) {
      if (!acceptChanges)
        throw new KernelError(
          `${others}, so that the run would not go on bit for bit; --accept-changes (acceptChanges: true) goes on with them`,
        );
      host.warn('run.kernels', others);
    }
    const progress = await loadCheckpoint(run, checkpoint, { optimizer: true });
    const references = await openReferences(run, { directory: join(log.path, REFERENCES), mode: 'read' });
    const critics = await openCritics(run, checkpoint);
    await publishAll(run);
    return { run: { ...run, references, critics }, progress };
  } catch (error) {
    await run.dispose();
    throw error;
  }
}

/** What to say where other kernels compute than those that the log names last. */
async function otherKernels(log: RunDirectory, { backends }: OpenRun): Promise<string | undefined> {
  const began = (await log.events()).find((event): event is RunEvent & RunStarted => event.type === 'run.started');
  if (began === undefined) return undefined;
  const text = ({ kernels, isa }: Pick<Hardware, 'kernels' | 'isa'>) => `${kernels} (${isa})`;
  for (const [model, { hardware }] of Object.entries(backends)) {
    const [before, now] = [text(began.backends?.[model] ?? began.hardware), text(hardware)];
    if (before !== now) return `${log.path} was begun with ${before} kernels, here are ${now}`;
  }
  return undefined;
}
