/** Checkpoints: the models of a run and its progress, written completely or not at all. */

import { CheckpointError, messageOf } from '@drmas/engine/errors';
import { parseStored } from '@drmas/engine/events';
import type { Commits } from '@drmas/engine/formats';
import { type Files, joinPath } from '@drmas/engine/host';
import { z } from 'zod';
import type { Checkpoint } from '../store/checkpoint-files.js';
import type { OpenRun, RunLog, TrainingRun } from './run/run-state.js';
import { saveCritics } from './signals/critic-values.js';
import { FOLDER, keptProgress, keptSchema, loadProgress, type Progress, type ProgressRun } from './state/progress.js';
import { endsAfter } from './state/stop-rules.js';

const STATE = 'state.json';

const stateSchema = keptSchema.extend({
  /** Commits of models on hubs, by name: a branch may move before the run is resumed. */
  commits: z.record(z.string(), z.string().regex(FOLDER)).default({}),
});

/**
 * Whether a step writes a checkpoint: the last step, every N-th, and the step of the best evaluation if the recipe
 * keeps it. The beginning writes one if it is also the end (a run of a warm start alone), or if the recipe keeps it.
 */
export function checkpointDue(
  training: Pick<TrainingRun['training'], 'steps' | 'checkpointEvery' | 'keepFirst'>,
  progress: Pick<Progress, 'step' | 'stops'>,
): boolean {
  const { step, stops } = progress;
  if (endsAfter(training, progress) || step === stops.bestStep) return true;
  return step === 0 ? training.keepFirst : step % training.checkpointEvery === 0;
}

/** Writes policies, optimisers, critics and the progress, completely or not at all. A signal does not interrupt it. */
export async function saveCheckpoint(
  run: Pick<TrainingRun, 'training' | 'trained' | 'learners' | 'commits' | 'host'>,
  progress: Progress,
  log: Pick<RunLog, 'writeCheckpoint'>,
  options: { readonly interrupted?: boolean } = {},
): Promise<void> {
  const { trained, commits, training } = run;
  const { files, protect } = run.host;
  const fill = async (directory: string) => {
    for (const { name, handle, settings } of trained) {
      const modelDirectory = joinPath(directory, name);
      await files.makeDirectory(modelDirectory);
      await handle.save(modelDirectory, { optimizer: settings !== undefined });
    }
    await saveCritics(run, directory);
    await files.write(joinPath(directory, STATE), JSON.stringify({ ...keptProgress(progress), commits }));
  };
  const pinned = [...(training.keepFirst ? [0] : []), ...[progress.stops.bestStep ?? []].flat()];
  await protect(() => log.writeCheckpoint(progress.step, fill, { ...options, keep: training.keepCheckpoints, pinned }));
}

/** Puts the weights of a checkpoint into the run's models and returns the progress. @throws CheckpointError */
export async function loadCheckpoint(
  run: ProgressRun & Pick<OpenRun, 'trained' | 'host'>,
  { step, directory }: Checkpoint,
  { optimizer }: { readonly optimizer: boolean },
): Promise<Progress> {
  const { trained, host } = run;
  const path = joinPath(directory, STATE);
  const state = await readState(host.files, path);
  if (state.step !== step) throw new CheckpointError(`${path} is of step ${state.step}, its directory of step ${step}`);
  for (const { name, handle, settings } of trained) {
    const modelDirectory = joinPath(directory, name);
    if (!(await host.files.exists(modelDirectory)))
      throw new CheckpointError(
        `${directory} has no model '${name}': the recipe had other policies when it was written`,
      );
    await handle.load(modelDirectory, { optimizer: optimizer && settings !== undefined });
  }
  return loadProgress(run, state);
}

/**
 * The commits of models on hubs at the beginning of a run. Undefined for a new run.
 * @throws CheckpointError
 */
export async function commitsOf(files: Files, checkpoint: Checkpoint | undefined): Promise<Commits> {
  return checkpoint === undefined ? {} : (await readState(files, joinPath(checkpoint.directory, STATE))).commits;
}

/** The hash of the warm start of a checkpoint's run. Undefined without a warm start. @throws CheckpointError */
export async function warmStartOf(files: Files, { directory }: Checkpoint): Promise<string | undefined> {
  return (await readState(files, joinPath(directory, STATE))).warmStart;
}

async function readState(files: Files, path: string): Promise<z.output<typeof stateSchema>> {
  const fault = (why: string) => new CheckpointError(`${why}; choose another checkpoint with --checkpoint`);
  const text = await files.readText(path).catch((error: unknown) => {
    throw fault(`${path} cannot be read: ${messageOf(error)}`);
  });
  return parseStored(stateSchema, text, { path, what: 'the state of a checkpoint', fault });
}
