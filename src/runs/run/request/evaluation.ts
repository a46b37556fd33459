/** The request for an evaluation: of a run's checkpoint, or of a recipe before any training. */
import { join } from 'node:path';
import { isNoOptimizer } from '@drmas/engine/disk';
import { isObject, RecipeError, RunError, suggestion } from '@drmas/engine/errors';
import { nodeFiles } from '@drmas/engine/platform';
import { assignmentOf, type Recipe, type RecipeDefinition } from '../../../method/recipe.js';
import { isRecipeFile, shippedRecipes } from '../../../method/recipe-files.js';
import { type Checkpoint, RECIPE, RunDirectory } from '../../../method/store.js';
import { whileHeld } from './checkpoint-names.js';
import { requestRecipe } from './new-run.js';
import { recipeOfRun } from './recipe-of-run.js';

export interface CheckpointRequest {
  /** Numbers of held-out tasks and of episodes for each task; by default the recipe's. */
  readonly tasks?: number | undefined;
  readonly samples?: number | undefined;
  /** Fields of tasks; the scores are also given for each of their values. */
  readonly by?: readonly string[] | undefined;
  readonly set?: readonly string[] | undefined;
  /** The checkpoint that plays, `step-000004`, `4` or `best`; by default the last. */
  readonly from?: string | undefined;
  readonly recipe?: string | RecipeDefinition | undefined;
  readonly acceptChanges?: boolean | undefined;
  /** Receives a message if the checkpoint is not checked, because a version without digests wrote it. */
  readonly notify?: ((message: string) => void) | undefined;
}

/** Settings of the recipe that an evaluation has of its own, as overrides. */
const evaluationOverrides = ({ set = [], tasks, samples, by }: CheckpointRequest): string[] => [
  ...set,
  ...Object.entries({ tasks, samples, by }).flatMap(([key, value]) =>
    value === undefined ? [] : [`evaluation.${key}=${JSON.stringify(value)}`],
  ),
];

/** The settings of an evaluation of a run's checkpoint. */
export interface RequestedEvaluation {
  readonly run: RunDirectory;
  readonly recipe: Recipe;
  readonly checkpoint: Checkpoint;
}

/**
 * @param evaluate Reads the checkpoint. A run that trains does not remove it before the end
 * @throws RunError when there is no run, no checkpoint in it yet, or its code has changed and that was not accepted;
 *   CheckpointError when the checkpoint is damaged
 */
export async function requestEvaluation<Result>(
  path: string,
  request: CheckpointRequest,
  evaluate: (requested: RequestedEvaluation) => Promise<Result>,
): Promise<Result> {
  const { from, recipe: given, acceptChanges, notify } = request;
  const run = await RunDirectory.open(path);
  const { recipe } = await recipeOfRun(run, given, { more: evaluationOverrides(request), acceptChanges });
  requirePolicies(run, assignmentOf(recipe).trained);
  return whileHeld(run, from, 'evaluate', async (checkpoint) => {
    const unchecked = await run.requireWhole(checkpoint, isNoOptimizer);
    if (unchecked !== undefined) notify?.(unchecked);
    return evaluate({ run, recipe, checkpoint });
  });
}

/** @throws RunError for a policy that the run has not trained, because its agent was added or renamed since then */
function requirePolicies({ path, record: { resolved } }: RunDirectory, trained: readonly { name: string }[]): void {
  const { policies } = resolved;
  if (!isObject(policies)) return;
  const added = trained.find(({ name }) => !Object.hasOwn(policies, name));
  if (added !== undefined)
    throw new RunError(
      `${path} has not trained the policy '${added.name}'${suggestion(added.name, Object.keys(policies))}; evaluate the recipe's file instead, or give the agent its former name`,
    );
}

/**
 * The recipe of an evaluation before any training; all of its agents may be frozen. Undefined if `source` is not a
 * recipe but the directory of a run.
 * @throws RecipeError for a flag that needs a run
 */
export async function requestBaseline(
  source: string | RecipeDefinition,
  request: CheckpointRequest,
): Promise<Recipe | undefined> {
  if (typeof source === 'string') {
    const isRun = await nodeFiles.exists(join(source, RECIPE));
    if (isRun || !(isRecipeFile(source) || shippedRecipes().includes(source))) return undefined;
  }
  if (request.from !== undefined || request.recipe !== undefined)
    throw new RecipeError('--checkpoint and --recipe need the directory of a run; this is a recipe');
  return (await requestRecipe(source, { set: evaluationOverrides(request), allFrozen: true })).recipe;
}
