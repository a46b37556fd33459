/** Steps of a run that were made before, made again: with all their effects on models and progress, without a log. */
import { EVENT_VERSION, type RunEvent, type Step } from '@drmas/engine/events';
import type { Recipe } from '../../src/method/recipe.js';
import { type Checkpoint, RunDirectory } from '../../src/method/store.js';
import { saveCheckpoint } from '../../src/method/training/checkpoint.js';
import type { Played } from '../../src/method/training/play/played.js';
import type { RunLog, TrainingRun } from '../../src/method/training/run/run-state.js';
import type { Progress } from '../../src/method/training/state/progress.js';
import { learnStep } from '../../src/method/training/step/learn-step.js';
import { playStep, positionAfter } from '../../src/method/training/step/play-step.js';
import { advance, recordStep } from '../../src/method/training/step/record-step.js';
import type { Learnt } from '../../src/method/training/update/update-policies.js';
import { type CheckpointRequest, evaluationOverrides } from '../../src/runs/run/request/evaluation.js';
import { recipeOfRun } from '../../src/runs/run/request/recipe-of-run.js';

/** The step of a run that is made again, and changes of its recipe. */
interface ReplayRequest extends CheckpointRequest {
  readonly step: number;
}

/**
 * Finds the run, the recipe, and the last checkpoint before a step. Without one the replay begins where the run began.
 * @throws RunError when there is no run, or its code has changed and that was not accepted; CheckpointError when the
 *   checkpoint is damaged
 */
export async function requestReplay(
  path: string,
  request: ReplayRequest,
): Promise<{ readonly run: RunDirectory; readonly recipe: Recipe; readonly checkpoint: Checkpoint | undefined }> {
  const { step, recipe: given, acceptChanges } = request;
  const run = await RunDirectory.open(path);
  const { recipe } = await recipeOfRun(run, given, { more: evaluationOverrides(request), acceptChanges });
  const checkpoint = (await run.checkpoints()).findLast((each) => each.step < step);
  if (checkpoint !== undefined) await run.requireWhole(checkpoint);
  return { run, recipe, checkpoint };
}

/** A step that was made again. */
export interface ReplayedStep {
  readonly played: Played;
  readonly learnt: Learnt;
  /** The event that the run's log has, or would have, of the step. */
  readonly event: Step;
}

/** Plays the step after the last complete step, and learns from it. */
export async function replayStep(run: TrainingRun, progress: Progress): Promise<ReplayedStep> {
  return learnAgain(run, progress, await playStep(run, progress));
}

/**
 * Learns from a played step as the training loop does.
 * @throws TrainingError if the step would end the run; BackendError
 */
export async function learnAgain(run: TrainingRun, progress: Progress, played: Played): Promise<ReplayedStep> {
  const { host, training } = run;
  const after = positionAfter(run, progress, played);
  const learnt = await learnStep(run, progress, played);
  advance(progress, after, learnt);
  let event: Step | undefined;
  const log: Pick<RunLog, 'emit' | 'writeStepEpisodes'> = {
    emit(body) {
      if (body.type === 'step') event = body;
      return { ...body, time: host.clock.now().toISOString(), version: EVENT_VERSION } as RunEvent;
    },
    async writeStepEpisodes() {},
  };
  // The limits of later updates follow from the recorded norms.
  await recordStep({ ...run, training: { ...training, keepEpisodes: false } }, progress, log as RunLog, played, learnt);
  host.signal.throwIfAborted();
  return { played, learnt, event: event as Step };
}

/** Writes the models and the progress into a folder that exists, as a checkpoint outside of the run's directory. */
export async function keepState(run: TrainingRun, progress: Progress, directory: string): Promise<Checkpoint> {
  const log: Pick<RunLog, 'writeCheckpoint'> = { writeCheckpoint: (_, fill) => fill(directory) };
  await saveCheckpoint(run, progress, log);
  return { step: progress.step, directory };
}
