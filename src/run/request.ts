/** Requests and what they resolve to: a new run, a run that goes on, the evaluation of one. */
import { RunError } from '../core/errors.js';
import type { RecipeDefinition } from '../recipe/define.js';
import { type LoadedRecipe, loadRecipe } from '../recipe/load-recipe.js';
import { type Recipe, recipeJson } from '../recipe/recipe.js';
import { resolveRecipe } from '../recipe/resolve.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import { contentHash } from '../store/file-cache.js';
import { RunDirectory } from '../store/run-directory.js';
import type { RunRecord } from '../store/run-record.js';

/** The source that recipe.json names for a recipe that has no file. */
const PROGRAM = 'a program';

/** A recipe as it was requested, and as it resolves. */
export interface RecipeRequest {
  readonly loaded: LoadedRecipe;
  /** Overrides as on the command line, the seed among them. */
  readonly overrides: readonly string[];
  readonly recipe: Recipe;
}

/** Loads a recipe that ships (by name), a recipe file (by path), or one that a program defines. @throws RecipeError */
export async function load(recipe: string | RecipeDefinition): Promise<LoadedRecipe> {
  if (typeof recipe === 'string') return loadRecipe(recipe);
  return { definition: recipe, name: recipe.input.name ?? recipe.input.team.name, source: PROGRAM, codeHash: '' };
}

/** Resolves a recipe with overrides. @throws RecipeError with the path of the value that is wrong */
export async function requestRecipe(
  recipe: string | RecipeDefinition,
  { set = [], seed }: { readonly set?: readonly string[] | undefined; readonly seed?: number | undefined } = {},
): Promise<RecipeRequest> {
  return resolved(await load(recipe), [...set, ...(seed === undefined ? [] : [`seed=${seed}`])]);
}

/** The content of a new run's recipe.json. */
export function runRecord({ loaded, overrides, recipe }: RecipeRequest): RunRecord {
  const { source, codeHash } = loaded;
  return { version: 1, recipe: { source, overrides, codeHash }, resolved: recipeJson(recipe), acceptedChanges: [] };
}

/** The recipe of a run that is there, with more overrides; `definition` where a program began the run. */
async function recipeOfRun(
  run: RunDirectory,
  definition: RecipeDefinition | undefined,
  more: readonly string[] = [],
): Promise<RecipeRequest> {
  const { source, overrides } = run.record.recipe;
  if (definition === undefined && source === PROGRAM)
    throw new RunError(
      `${run.path} was begun by a program, which alone has its recipe: call resume(run, definition) or evaluate(run, { recipe: definition }) of 'drmas' there`,
    );
  return resolved(await load(definition ?? source), [...overrides, ...more]);
}

function resolved(loaded: LoadedRecipe, overrides: readonly string[]): RecipeRequest {
  return { loaded, overrides, recipe: resolveRecipe(loaded.definition, { overrides, name: loaded.name }) };
}

export interface Continuation extends RecipeRequest {
  /** Whether the recipe or its code is not what the run was begun with, which was accepted. */
  readonly changed: boolean;
}

/**
 * Checks whether a run can go on, and touches nothing.
 * @throws RunError when there is no such run, it is complete, or its recipe has changed and that was not accepted
 */
export async function requestContinuation(
  run: RunDirectory,
  options: { readonly definition?: RecipeDefinition | undefined; readonly acceptChanges?: boolean | undefined } = {},
): Promise<Continuation> {
  const { path, record } = run;
  if ((await run.events()).some((event) => event.type === 'run.finished' && event.reason === 'completed'))
    throw new RunError(`${path} is complete: there is nothing to resume`);
  const request = await recipeOfRun(run, options.definition);
  const codeChanged = request.loaded.codeHash !== record.recipe.codeHash;
  const changed = codeChanged || contentHash(recipeJson(request.recipe)) !== contentHash(record.resolved);
  if (changed && options.acceptChanges !== true) {
    const what = codeChanged
      ? `the code of the recipe ${record.recipe.source} has changed`
      : 'the recipe resolves to other settings';
    throw new RunError(
      `${what} since ${path} was started; --accept-changes (acceptChanges: true) goes on with it as it is now`,
    );
  }
  return { ...request, changed };
}

/** Takes a run back to its last checkpoint, from where it goes on. */
export async function rewindRun(
  run: RunDirectory,
  { changed, loaded, recipe }: Continuation,
): Promise<Checkpoint | undefined> {
  const checkpoint = await run.latestCheckpoint();
  if (changed) await run.acceptChanges(loaded.codeHash, recipeJson(recipe), checkpoint?.step ?? 0);
  await run.rewind(checkpoint);
  return checkpoint;
}

export interface CheckpointRequest {
  /** Held-out tasks and episodes a task; by default those of the recipe. */
  readonly tasks?: number | undefined;
  readonly samples?: number | undefined;
  /** Fields of tasks by which the scores are divided too. */
  readonly by?: readonly string[] | undefined;
  readonly set?: readonly string[] | undefined;
  readonly definition?: RecipeDefinition | undefined;
}

/** Finds what an evaluation plays with. @throws RunError when there is no run, or no checkpoint in it yet */
export async function requestEvaluation(
  path: string,
  { tasks, samples, by, set = [], definition }: CheckpointRequest,
): Promise<{ readonly run: RunDirectory; readonly recipe: Recipe; readonly checkpoint: Checkpoint }> {
  const run = await RunDirectory.open(path);
  const evaluation = Object.entries({ tasks, samples, by }).flatMap(([key, value]) =>
    value === undefined ? [] : [`evaluation.${key}=${JSON.stringify(value)}`],
  );
  const { recipe } = await recipeOfRun(run, definition, [...set, ...evaluation]);
  return { run, recipe, checkpoint: await lastCheckpoint(run, 'evaluate') };
}

/** The last checkpoint of a run. @throws RunError when there is none */
export async function lastCheckpoint(run: RunDirectory, to: 'evaluate' | 'probe'): Promise<Checkpoint> {
  const checkpoint = await run.latestCheckpoint();
  if (checkpoint === undefined) throw new RunError(`${run.path} has no checkpoint to ${to}`);
  return checkpoint;
}
