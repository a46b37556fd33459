import { join } from 'node:path';
import type { Checkpoint } from '../store/checkpoint-files.js';
import { commitsOf, loadCheckpoint } from '../training/checkpoint.js';
import { openCritics } from '../training/update/critics.js';
import { openReferences, REFERENCES } from '../training/update/references.js';
import type { RunRequest, StartedRun } from './begin-run.js';
import { openRun, publishAll } from './open-run.js';

/** Opens a run as its checkpoint left it. @throws CheckpointError */
export async function resumeRun({ recipe, tasks, log, host }: RunRequest, checkpoint: Checkpoint): Promise<StartedRun> {
  const commits = await commitsOf(host.files, checkpoint);
  const run = await openRun(recipe, tasks, host, { commits });
  try {
    const progress = await loadCheckpoint(run, checkpoint, { optimizer: true });
    const references = await openReferences(run, { directory: join(log.path, REFERENCES), mode: 'read' });
    const critics = await openCritics(run, checkpoint);
    await publishAll(run);
    return { run: { ...run, references, critics }, progress };
  } catch (error) {
    await run.backend.dispose();
    throw error;
  }
}
