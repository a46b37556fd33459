import type { Episode } from '../core/episode.js';
import { TrainingError } from '../core/errors.js';
import type { EvaluationEvent } from '../core/events.js';
import type { Host } from '../core/host.js';
import type { Recipe } from '../recipe/recipe.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import { commitsOf, loadCheckpoint } from '../training/checkpoint.js';
import { playEvaluation } from '../training/evaluation/evaluate-policies.js';
import { commonFailure, failureText } from '../training/step/common-failure.js';
import { openRun, prepareTasks, publishAll } from './open-run.js';

export interface PlayedEvaluation {
  readonly event: EvaluationEvent;
  readonly episodes: readonly Episode[];
}

/**
 * Plays the recipe's evaluation with the policies of a checkpoint. Writes nothing.
 * @throws TrainingError when all episodes failed for one reason
 */
export async function evaluateCheckpoint(
  recipe: Recipe,
  checkpoint: Checkpoint,
  host: Host,
): Promise<PlayedEvaluation> {
  const purpose = 'evaluation';
  const commits = await commitsOf(host.files, checkpoint);
  const run = await openRun(recipe, await prepareTasks(recipe, purpose), host, { commits, purpose });
  try {
    for (const { message } of run.warnings) host.notify(message);
    const { step } = await loadCheckpoint(run, checkpoint, { optimizer: false });
    await publishAll(run);
    const played = await playEvaluation(run, { ...recipe.evaluation, step });
    const common = commonFailure([played]);
    if (common !== undefined) throw new TrainingError(`every episode failed alike: ${failureText(common)}`);
    return played;
  } finally {
    await run.dispose();
  }
}
