/** Requests and what they resolve to: a new run, a run that goes on, the evaluation of one. */
import { basename, extname, isAbsolute } from 'node:path';
import { CheckpointError, RunError } from '../core/errors.js';
import type { AgentProfile } from '../model/agent-profile.js';
import { nodeFiles } from '../platform/node-files.js';
import type { RecipeDefinition } from '../recipe/define.js';
import { codeOf, type LoadedRecipe, loadRecipe } from '../recipe/load-recipe.js';
import { agentProfiles, type Recipe, recipeJson } from '../recipe/recipe.js';
import { type ResolveOptions, resolveRecipe } from '../recipe/resolve.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import { contentHash } from '../store/files/content-hash.js';
import { isNoOptimizer, requireWhole } from '../store/files/digests.js';
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
  { set = [], seed, allFrozen }: RecipeOptions = {},
): Promise<RecipeRequest> {
  return resolved(await load(recipe), [...set, ...(seed === undefined ? [] : [`seed=${seed}`])], allFrozen);
}

interface RecipeOptions extends Pick<ResolveOptions, 'allFrozen'> {
  readonly set?: readonly string[] | undefined;
  readonly seed?: number | undefined;
}

/** The content of a new run's recipe.json. */
export function runRecord({ loaded, overrides, recipe }: RecipeRequest): RunRecord {
  const { source, codeHash } = loaded;
  return { version: 1, recipe: { source, overrides, codeHash }, ...described(recipe), acceptedChanges: [] };
}

const described = (recipe: Recipe) => ({ resolved: recipeJson(recipe), agents: agentProfiles(recipe) });

/**
 * The recipe of a run that is there: `recipe` is the definition where a program began the run, or the file, where it
 * lies elsewhere now.
 * @throws RunError when its code has changed, of which nothing was run then, and that was not accepted
 */
async function recipeOfRun(
  run: RunDirectory,
  recipe: string | RecipeDefinition | undefined,
  { more = [], acceptChanges }: { readonly more?: readonly string[]; readonly acceptChanges: boolean | undefined },
): Promise<RecipeRequest> {
  const { source, overrides, codeHash } = run.record.recipe;
  if (recipe === undefined && source === PROGRAM)
    throw new RunError(
      `${run.path} was begun by a program, which alone has its recipe: call resume(run, definition) or evaluate(run, { recipe: definition }) of 'drmas' there`,
    );
  const checkCode = (hash: string) => {
    if (hash !== codeHash && acceptChanges !== true)
      throw changedSince(run, `the code of the recipe ${typeof recipe === 'string' ? recipe : source} has changed`);
  };
  if (recipe === undefined && isAbsolute(source) && !(await nodeFiles.exists(source)))
    throw new RunError(
      `${run.path} was begun with ${source}, which is not there; --recipe FILE names where that recipe lies now`,
    );
  const loaded = await (typeof recipe === 'object' ? load(recipe) : loadRecipe(recipe ?? source, checkCode));
  const name = typeof recipe === 'string' ? basename(source, extname(source)) : loaded.name; // it keeps its name
  return resolved({ ...loaded, name }, [...overrides, ...more]);
}

/**
 * The agents of a run by name, without their weights. Runs of earlier versions do not record them: of those the recipe
 * is loaded.
 * @throws RunError, RecipeError as `recipeOfRun` does, for such a run alone
 */
export async function agentsOfRun(
  run: RunDirectory,
  acceptChanges?: boolean,
): Promise<Readonly<Record<string, AgentProfile>>> {
  return run.record.agents ?? agentProfiles((await recipeOfRun(run, undefined, { acceptChanges })).recipe);
}

function changedSince({ path }: RunDirectory, what: string): RunError {
  return new RunError(
    `${what} since ${path} was started; --accept-changes (acceptChanges: true) goes on with it as it is now`,
  );
}

function resolved(loaded: LoadedRecipe, overrides: readonly string[], allFrozen?: boolean): RecipeRequest {
  const { definition, name } = loaded;
  const recipe = resolveRecipe(definition, { overrides, name, code: codeOf(loaded), allFrozen });
  return { loaded, overrides, recipe };
}

export interface Continuation extends RecipeRequest {
  /** Whether the recipe or its code is not what the run was begun with, which was accepted. */
  readonly changed: boolean;
  /** Whether its file lies elsewhere. */
  readonly moved: boolean;
}

export interface ContinuationRequest {
  /** The definition, where a program began the run, or where the recipe's file lies now. */
  readonly recipe?: string | RecipeDefinition | undefined;
  readonly acceptChanges?: boolean | undefined;
  /** The checkpoint to go on from, `step-000004` or `4`; by default the last. */
  readonly from?: string | undefined;
}

/**
 * Checks whether a run can go on, and touches nothing.
 * @throws RunError when there is no such run, it is complete, or its recipe has changed and that was not accepted
 */
export async function requestContinuation(
  run: RunDirectory,
  { recipe, acceptChanges, from }: ContinuationRequest = {},
): Promise<Continuation> {
  const { path, record } = run;
  const complete = (await run.events()).some((event) => event.type === 'run.finished' && event.reason === 'completed');
  if (complete && from === undefined) throw new RunError(`${path} is complete: there is nothing to resume`);
  const request = await recipeOfRun(run, recipe, { acceptChanges });
  const { loaded, overrides } = request;
  const { source, codeHash } = record.recipe;
  const moved = loaded.source !== source;
  // Models beside a file that was moved are the same ones.
  const there = moved ? resolved({ ...loaded, source }, overrides).recipe : request.recipe;
  const changed = loaded.codeHash !== codeHash || contentHash(recipeJson(there)) !== contentHash(record.resolved);
  if (changed && acceptChanges !== true) throw changedSince(run, 'the recipe resolves to other settings');
  return { ...request, changed, moved };
}

/**
 * Takes a run back to a checkpoint, by default its last, from where it goes on.
 * @throws CheckpointError when the checkpoint is damaged, naming an older one; RunError when there is none like `from`
 */
export async function rewindRun(
  run: RunDirectory,
  { changed, moved, loaded, recipe }: Continuation,
  { from, notify }: { readonly from?: string | undefined; readonly notify: (message: string) => void },
): Promise<Checkpoint | undefined> {
  const checkpoint = from === undefined ? await run.latestCheckpoint() : await checkpointNamed(run, from);
  try {
    for (const notice of await run.rewind(checkpoint)) notify(notice);
  } catch (error) {
    if (!(error instanceof CheckpointError) || checkpoint === undefined) throw error;
    const older = (await run.checkpoints()).findLast(({ step }) => step < checkpoint.step);
    const way =
      older === undefined
        ? 'and there is no older checkpoint to go on from'
        : `drmas resume ${run.path} --from ${basename(older.directory)} goes on from an older checkpoint`;
    throw Object.assign(new CheckpointError(`${error.message}; ${way}`), { cause: error });
  }
  if (changed || moved) {
    const { source, codeHash } = loaded;
    await run.recordRecipe({ source, codeHash }, described(recipe), changed ? (checkpoint?.step ?? 0) : undefined);
  }
  return checkpoint;
}

/**
 * A checkpoint by the name of its directory or its step, by default the last. Its files are not compared with their
 * digests.
 * @param to What it is for
 * @throws RunError naming those that there are
 */
export async function checkpointOf(run: RunDirectory, name: string | undefined, to: string): Promise<Checkpoint> {
  if (name !== undefined) return checkpointNamed(run, name);
  const checkpoint = await run.latestCheckpoint();
  if (checkpoint === undefined) throw new RunError(`${run.path} has no checkpoint to ${to}`);
  return checkpoint;
}

async function checkpointNamed(run: RunDirectory, name: string): Promise<Checkpoint> {
  const checkpoints = await run.checkpoints();
  const step = /^(?:step-)?(\d+)$/.exec(name)?.[1];
  const chosen = checkpoints.find((checkpoint) => checkpoint.step === Number(step));
  if (chosen !== undefined) return chosen;
  const names = checkpoints.map(({ directory }) => basename(directory)).join(', ');
  throw new RunError(`${run.path} has no checkpoint '${name}'; it has ${names === '' ? 'none' : names}`);
}

export interface CheckpointRequest {
  /** Held-out tasks and episodes a task; by default those of the recipe. */
  readonly tasks?: number | undefined;
  readonly samples?: number | undefined;
  /** Fields of tasks by which the scores are divided too. */
  readonly by?: readonly string[] | undefined;
  readonly set?: readonly string[] | undefined;
  /** The checkpoint that plays, `step-000004` or `4`; by default the last. */
  readonly from?: string | undefined;
  readonly recipe?: string | RecipeDefinition | undefined;
  readonly acceptChanges?: boolean | undefined;
}

/**
 * Finds what an evaluation plays with.
 * @throws RunError when there is no run, no checkpoint in it yet, or its code has changed and that was not accepted;
 *   CheckpointError when the checkpoint is damaged
 */
export async function requestEvaluation(
  path: string,
  { tasks, samples, by, set = [], from, recipe: given, acceptChanges }: CheckpointRequest,
): Promise<{ readonly run: RunDirectory; readonly recipe: Recipe; readonly checkpoint: Checkpoint }> {
  const run = await RunDirectory.open(path);
  const evaluation = Object.entries({ tasks, samples, by }).flatMap(([key, value]) =>
    value === undefined ? [] : [`evaluation.${key}=${JSON.stringify(value)}`],
  );
  const { recipe } = await recipeOfRun(run, given, { more: [...set, ...evaluation], acceptChanges });
  return { run, recipe, checkpoint: await wholeCheckpoint(run, from, 'evaluate') };
}

/** The last checkpoint of a run. @throws RunError when there is none; CheckpointError when it is damaged */
export function lastCheckpoint(run: RunDirectory, to: 'evaluate' | 'probe'): Promise<Checkpoint> {
  return wholeCheckpoint(run, undefined, to);
}

/** A checkpoint as `checkpointOf` finds it, whose weights were compared with their digests. */
async function wholeCheckpoint(run: RunDirectory, name: string | undefined, to: string): Promise<Checkpoint> {
  const checkpoint = await checkpointOf(run, name, to);
  await requireWhole(nodeFiles, checkpoint.directory, isNoOptimizer);
  return checkpoint;
}
