import { TrainingError } from '@drmas/engine/errors';
import type { ScoredEvaluation } from '@drmas/engine/events';
import type { Host } from '@drmas/engine/host';
import { type Episode, HOW_TO_SUCCEED, isScored, lacksSuccess } from '@drmas/engine/nouns';
import { commitsOf } from '../../../method/checkpoints.js';
import { allFailedText, commonFailure, NO_SCORE, playEvaluation } from '../../../method/index.js';
import type { Recipe } from '../../../method/recipe.js';
import type { Checkpoint } from '../../../method/store.js';
import { openRun, publishAll } from '../open/open-run.js';
import { prepareTasks } from '../open/prepare-tasks.js';
import { startingWeights } from './starting-weights.js';

export interface PlayedEvaluation {
  readonly event: ScoredEvaluation;
  readonly episodes: readonly Episode[];
}

/**
 * Plays the recipe's evaluation with the policies of a checkpoint; without a checkpoint, as a run would begin: after
 * the warm start. Writes nothing but the warm start's cache.
 * @throws TrainingError when all episodes failed for one reason, or no episode has a score
 */
export async function evaluateCheckpoint(
  recipe: Recipe,
  checkpoint: Checkpoint | undefined,
  host: Host,
): Promise<PlayedEvaluation> {
  const purpose = 'evaluation';
  const commits = await commitsOf(host.files, checkpoint);
  const tasks = await prepareTasks(recipe, purpose, { ...host, commits });
  const run = await openRun(recipe, tasks, host, { commits, purpose });
  try {
    for (const { message } of run.warnings) host.notify(message);
    const { step } = (await startingWeights(run, recipe.warmStart, { checkpoint })).progress;
    await publishAll(run);
    const { event, episodes } = await playEvaluation(run, { ...recipe.evaluation, step });
    const common = commonFailure([{ episodes }]);
    if (common !== undefined) throw new TrainingError(allFailedText(common));
    if (!isScored(event)) throw new TrainingError(NO_SCORE);
    if (lacksSuccess(event, recipe.team.success !== undefined)) host.notify(HOW_TO_SUCCEED);
    return { event, episodes };
  } finally {
    await run.dispose();
  }
}
