/** Resolves requests: for a new run, for a run to resume, and for an evaluation. */
import { basename, dirname, extname, isAbsolute, join, sep } from 'node:path';
import type { BackendDeclaration } from '@drmas/engine/backends';
import { backendIdentity } from '@drmas/engine/contract';
import { contentHash, isNoOptimizer, requireWhole, SEAL } from '@drmas/engine/disk';
import { CheckpointError, isObject, RecipeError, RunError, suggestion } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import type { Secret } from '@drmas/engine/host';
import type { AgentProfile } from '@drmas/engine/model';
import { commandText, nodeFiles } from '@drmas/engine/platform';
import { storedReferences } from '../../method/checkpoints.js';
import { DEFAULT_SCORE, type Tasks } from '../../method/index.js';
import type { RecipeDefinition } from '../../method/recipe.js';
import {
  agentProfiles,
  assignmentOf,
  backendOfModel,
  type Recipe,
  recipeJson,
  serverKeyOf,
  typeOf,
} from '../../method/recipe.js';
import {
  codeOf,
  isRecipeFile,
  type LoadedRecipe,
  loadRecipe,
  shippedRecipes,
  withLossModules,
  withoutRemoved,
} from '../../method/recipe-files.js';
import type { Checkpoint, RunRecord } from '../../method/store.js';
import { RECIPE, REFERENCES, RunDirectory, runsBeside } from '../../method/store.js';
import { type ResolveOptions, resolveRecipe } from '../composition/resolve-recipe.js';
import { standard } from '../composition/standard.js';
import { dataOf } from './begin-run.js';
import { purposeOf } from './checks/backend-checks.js';
import { requireOwnAddress, requireOwnRecipe, requireOwnSettings } from './stored-data.js';

/** The source in recipe.json for a recipe without a file. */
const PROGRAM = 'a program';

export interface RecipeRequest {
  readonly loaded: LoadedRecipe;
  /** Overrides as on the command line, including the seed. */
  readonly overrides: readonly string[];
  readonly recipe: Recipe;
}

/** Loads a recipe that ships (by name), a recipe file (by path), or a program's definition. @throws RecipeError */
export async function load(recipe: string | RecipeDefinition): Promise<LoadedRecipe> {
  if (typeof recipe === 'string')
    return loadRecipe(recipe).catch(async (error: unknown) => {
      const runs = isRecipeFile(recipe) ? [] : await runsBeside(nodeFiles, recipe);
      if (!(error instanceof RecipeError) || runs.length === 0) throw error;
      throw new RecipeError(`${error.message}; there is no such run either${suggestion(basename(recipe), runs)}`);
    });
  const definition = await withLossModules(recipe);
  return { definition, name: recipe.input.name ?? recipe.input.team.name, source: PROGRAM, codeHash: '' };
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

export function runRecord({ loaded, overrides, recipe }: RecipeRequest): RunRecord {
  const { source, codeHash } = loaded;
  return { version: 1, recipe: { source, overrides, codeHash }, ...described(recipe), acceptedChanges: [] };
}

const described = (recipe: Recipe) => ({ resolved: recipeJson(recipe), agents: agentProfiles(recipe) });

/**
 * The recipe of an existing run. `recipe` is the definition if a program started the run, or the path of the recipe's
 * file if it was moved.
 * @throws RunError when its code has changed and the change was not accepted; the changed code did not run. Also if the
 *   stored data names a program or an address that this user did not name
 */
async function recipeOfRun(
  run: RunDirectory,
  recipe: string | RecipeDefinition | undefined,
  { more = [], acceptChanges }: { readonly more?: readonly string[]; readonly acceptChanges: boolean | undefined },
): Promise<RecipeRequest> {
  const { source, overrides, codeHash } = run.record.recipe;
  if (recipe === undefined && source === PROGRAM)
    throw new RunError(
      `${run.path} was started by a program, and only that program has its recipe: call resume(run, definition) or evaluate(run, { recipe: definition }) of 'drmas' there`,
    );
  const checkCode = (hash: string) => {
    if (hash !== codeHash && acceptChanges !== true)
      throw changedSince(run, `the code of the recipe ${typeof recipe === 'string' ? recipe : source} has changed`);
  };
  if (recipe === undefined && isAbsolute(source) && !(await nodeFiles.exists(source)))
    throw new RunError(
      `${run.path} was started with ${source}, which does not exist; give the recipe's new path with --recipe FILE`,
    );
  if (recipe === undefined) await requireOwnRecipe(run.path, source);
  const loaded = await (typeof recipe === 'object' ? load(recipe) : loadRecipe(recipe ?? source, checkCode));
  await requireOwnSettings(run.path, overrides, { definition: loaded.definition, typed: more });
  const name = typeof recipe === 'string' ? basename(source, extname(source)) : loaded.name; // the name does not change
  return resolved({ ...loaded, name }, [...overrides, ...more]);
}

/**
 * The agents of a run by name, without their weights. Runs of earlier versions do not record them; then the recipe is
 * loaded.
 * @throws RunError, RecipeError as `recipeOfRun` does, only for such a run
 */
export async function agentsOfRun(
  run: RunDirectory,
  acceptChanges?: boolean,
): Promise<Readonly<Record<string, AgentProfile>>> {
  return run.record.agents ?? agentProfiles((await recipeOfRun(run, undefined, { acceptChanges })).recipe);
}

/**
 * The backend of a type that trained a policy of a run: a standard one, else one from the `use` of the run's recipe,
 * as its file is now. Undefined if neither has the type.
 * @throws RunError, RecipeError as `recipeOfRun` does, if the type is not a standard one
 */
export async function backendOfRun(run: RunDirectory, type: unknown): Promise<BackendDeclaration | undefined> {
  const shipped = standard.backends.find((backend) => typeOf(backend) === type);
  if (shipped !== undefined) return shipped;
  const { recipe } = await recipeOfRun(run, undefined, { acceptChanges: true });
  return recipe.lists.backends.find((backend) => typeOf(backend) === type);
}

/**
 * The key that the run's recipe, as its file is now, has for a policy's server. Runs do not record keys.
 * @throws RunError, RecipeError if the recipe cannot be loaded
 */
export async function serverKeyOfRun(run: RunDirectory, policy: string): Promise<Secret | undefined> {
  const { recipe } = await recipeOfRun(run, undefined, { acceptChanges: true });
  return serverKeyOf(backendOfModel(recipe, policy));
}

/**
 * Requires that this user has named or allowed the address of the server that has a policy's weights.
 * @throws RunError with the flag that allows it
 */
export async function requireServerOfRun(run: RunDirectory, url: string): Promise<void> {
  const request = await recipeOfRun(run, undefined, { acceptChanges: true }).catch(() => undefined);
  await requireOwnAddress(run.path, 'checkpoints: tinker.json: url', url, { definition: request?.loaded.definition });
}

function changedSince({ path }: RunDirectory, what: string): RunError {
  return new RunError(
    `${what} since ${path} was started; --accept-changes (acceptChanges: true) uses the changed version`,
  );
}

function resolved(loaded: LoadedRecipe, overrides: readonly string[], allFrozen?: boolean): RecipeRequest {
  const { definition, name } = loaded;
  const recipe = resolveRecipe(definition, { overrides, name, code: codeOf(loaded), allFrozen });
  return { loaded, overrides, recipe };
}

export interface Continuation extends RecipeRequest {
  /** Whether the recipe or its code has changed since the run began, and the user accepted the change. */
  readonly changed: boolean;
  readonly moved: boolean;
}

export interface ContinuationRequest {
  /** The definition if a program started the run, or the path of the recipe's file if it was moved. */
  readonly recipe?: string | RecipeDefinition | undefined;
  readonly acceptChanges?: boolean | undefined;
  /** The checkpoint to resume from, `step-000004`, `4` or `best`; by default the last. */
  readonly from?: string | undefined;
}

/**
 * Checks whether a run can be resumed, and changes nothing.
 * @throws RunError when there is no such run, it is complete, or its recipe has changed and that was not accepted
 */
export async function requestContinuation(
  run: RunDirectory,
  { recipe, acceptChanges, from }: ContinuationRequest = {},
): Promise<Continuation> {
  const { path, record } = run;
  const events = await run.events();
  const complete = events.some((event) => event.type === 'run.finished' && event.reason === 'completed');
  if (complete && from === undefined)
    throw new RunError(`${path} is complete: there is nothing to resume${afterStop(events)}`);
  const request = await recipeOfRun(run, recipe, { acceptChanges });
  const { loaded, overrides } = request;
  const { source, codeHash } = record.recipe;
  const moved = loaded.source !== source;
  // Models and other files beside a moved file count as the same files.
  const there = moved ? resolved({ ...loaded, source }, overrides).recipe : request.recipe;
  const settings = moved ? movedPaths(recipeJson(there), dirname(loaded.source), dirname(source)) : recipeJson(there);
  const changed =
    loaded.codeHash !== codeHash || contentHash(settings) !== contentHash(withoutRemoved(record.resolved));
  if (changed && acceptChanges !== true) throw changedSince(run, 'the recipe resolves to other settings');
  return { ...request, changed, moved };
}

/** Settings with paths below the folder `to` for paths below `from`, such as task files beside the recipe. */
const movedPaths = (settings: unknown, from: string, to: string): unknown =>
  JSON.parse(JSON.stringify(settings), (_, value: unknown) =>
    typeof value === 'string' && value.startsWith(from + sep) ? to + value.slice(from.length) : value,
  );

/** The way on for a run that a rule of `training.stopWhen` has ended. */
function afterStop(events: readonly RunEvent[]): string {
  const stop = events.findLast((event) => event.type === 'stop');
  if (stop === undefined) return '';
  return `. training.stopWhen.${stop.rule} ended it at step ${stop.step}; to train on, change the recipe and add --checkpoint ${stop.step} --accept-changes`;
}

/**
 * Compares the references that a resumed run reads with their digests, and changes nothing.
 * @throws CheckpointError naming a file that is damaged, or a reference that is missing
 */
export async function requireReferences(run: RunDirectory, recipe: Recipe): Promise<void> {
  const trained = assignmentOf(recipe).trained.map(({ name }) => ({
    name,
    settings: recipe.policies[name],
    backendKey: backendIdentity(backendOfModel(recipe, name)),
  }));
  for (const name of storedReferences(recipe.warmStart?.share, trained)) {
    const directory = join(run.path, REFERENCES, name);
    if (!(await nodeFiles.exists(directory))) throw new CheckpointError(`${directory} is missing`);
    if ((await requireWhole(nodeFiles, directory)) === 'unsealed' && !(await run.mayLackDigests()))
      throw new CheckpointError(`${join(directory, SEAL)} is missing`);
  }
}

/**
 * Compares the files that tasks are read from with those that the run began with. Other tasks may be held out then.
 * @throws RunError naming the first file that differs, unless the change is accepted
 */
export async function requireSameData(run: RunDirectory, tasks: Tasks, acceptChanges = false): Promise<void> {
  const began = (await run.events()).find((event) => event.type === 'run.started');
  if (acceptChanges || began?.type !== 'run.started') return;
  const before = new Map(began.data?.map((origin) => [origin.name, origin]));
  for (const { name, commit, files } of dataOf(tasks).data ?? [])
    for (const [file, sha256] of Object.entries(files)) {
      const was = before.get(name)?.files[file];
      const what = commit === undefined ? `the file of tasks ${name}` : `${file} of ${name}`;
      if (was !== undefined && was !== sha256) throw changedSince(run, `${what} has changed`);
    }
}

/**
 * Rewinds a run to a checkpoint, by default its last, to resume from it.
 * @throws CheckpointError when the checkpoint is damaged, with the name of an older one, or when a reference is
 *   damaged; RunError when there is no checkpoint `from`. Nothing is changed in that case
 */
export async function rewindRun(
  run: RunDirectory,
  { changed, moved, loaded, recipe }: Continuation,
  { from, notify }: { readonly from?: string | undefined; readonly notify: (message: string) => void },
): Promise<Checkpoint | undefined> {
  const checkpoint = from === undefined ? await run.latestCheckpoint() : await checkpointNamed(run, from);
  if (checkpoint !== undefined) await requireReferences(run, recipe);
  try {
    for (const notice of await run.rewind(checkpoint)) notify(notice);
  } catch (error) {
    if (!(error instanceof CheckpointError) || checkpoint === undefined) throw error;
    const older = (await run.checkpoints()).findLast(({ step }) => step < checkpoint.step);
    const way =
      older === undefined
        ? 'and there is no older checkpoint to resume from'
        : `resume from an older checkpoint with ${commandText(['drmas', 'resume', run.path, '--checkpoint', basename(older.directory)])}`;
    throw Object.assign(new CheckpointError(`${error.message}; ${way}`), { cause: error });
  }
  if (changed || moved) {
    const { source, codeHash } = loaded;
    await run.recordRecipe({ source, codeHash }, described(recipe), changed ? (checkpoint?.step ?? 0) : undefined);
  }
  return checkpoint;
}

/**
 * A checkpoint by the name of its directory or its step, or `best`; by default the last. Its files are not compared
 * with their digests.
 * @param to The purpose, for the error message
 * @throws RunError with the names of the existing checkpoints
 */
export async function checkpointOf(run: RunDirectory, name: string | undefined, to: string): Promise<Checkpoint> {
  if (name !== undefined) return checkpointNamed(run, name);
  const checkpoint = await run.latestCheckpoint();
  if (checkpoint === undefined) throw new RunError(`${run.path} has no checkpoint to ${to}`);
  return checkpoint;
}

async function checkpointNamed(run: RunDirectory, name: string): Promise<Checkpoint> {
  if (name === BEST) return bestCheckpoint(run);
  const checkpoints = await run.checkpoints();
  const step = /^(?:step-)?(\d+)$/.exec(name)?.[1];
  const chosen = checkpoints.find((checkpoint) => checkpoint.step === Number(step));
  if (chosen !== undefined) return chosen;
  const names = checkpoints.map(({ directory }) => basename(directory)).join(', ');
  throw new RunError(`${run.path} has no checkpoint '${name}'; it has ${names === '' ? 'none' : names}`);
}

const BEST = 'best';

/**
 * The checkpoint whose step has the best evaluation, by `training.bestBy` of the run's recipe; of equal ones the first.
 * @throws RunError if no step with a checkpoint was evaluated
 */
async function bestCheckpoint(run: RunDirectory): Promise<Checkpoint> {
  const { training } = run.record.resolved;
  const by = isObject(training) && typeof training.bestBy === 'string' ? training.bestBy : DEFAULT_SCORE;
  const scores = new Map<number, number>();
  for (const event of await run.events()) {
    const score = event.type === 'evaluation' ? Object.entries(event).find(([name]) => name === by)?.[1] : undefined;
    if (event.type === 'evaluation' && typeof score === 'number') scores.set(event.step, score);
  }
  const checkpoints = await run.checkpoints();
  const scored = checkpoints.flatMap((checkpoint) => {
    const score = scores.get(checkpoint.step);
    return score === undefined ? [] : [{ checkpoint, score }];
  });
  const best = Math.max(...scored.map(({ score }) => score));
  const chosen = scored.find(({ score }) => score === best);
  if (chosen !== undefined) return chosen.checkpoint;
  const names = checkpoints.map(({ directory }) => basename(directory)).join(', ');
  throw new RunError(
    `${run.path} has no checkpoint of a step that was evaluated, so none is the best; it has ${names === '' ? 'none' : names}. training.keepBest writes one at each best evaluation`,
  );
}

/**
 * A recipe for a study that does not need training. If all agents are frozen, nothing trains: the recipe gets no steps.
 * @throws RecipeError with the path of the value that is wrong
 */
export async function requestStudy(
  source: string | RecipeDefinition,
  options: Omit<RecipeOptions, 'allFrozen'>,
): Promise<Recipe> {
  const { recipe } = await requestRecipe(source, { ...options, allFrozen: true });
  return purposeOf(recipe) === 'evaluation' ? { ...recipe, training: { ...recipe.training, steps: 0 } } : recipe;
}

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

/**
 * @throws RunError when there is no run, no checkpoint in it yet, or its code has changed and that was not accepted;
 *   CheckpointError when the checkpoint is damaged
 */
export async function requestEvaluation(
  path: string,
  request: CheckpointRequest,
): Promise<{ readonly run: RunDirectory; readonly recipe: Recipe; readonly checkpoint: Checkpoint }> {
  const { from, recipe: given, acceptChanges, notify } = request;
  const run = await RunDirectory.open(path);
  const { recipe } = await recipeOfRun(run, given, { more: evaluationOverrides(request), acceptChanges });
  return { run, recipe, checkpoint: await wholeCheckpoint(run, from, 'evaluate', notify) };
}

/** The step of a run that is made again, and changes of its recipe. */
export interface ReplayRequest extends CheckpointRequest {
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

/** The last checkpoint of a run. @throws RunError when there is none; CheckpointError when it is damaged */
export function lastCheckpoint(run: RunDirectory, to: 'evaluate' | 'probe'): Promise<Checkpoint> {
  return wholeCheckpoint(run, undefined, to);
}

/** Finds a checkpoint as `checkpointOf` does, and compares its weights with their digests. */
async function wholeCheckpoint(
  run: RunDirectory,
  name: string | undefined,
  to: string,
  notify?: (message: string) => void,
): Promise<Checkpoint> {
  const checkpoint = await checkpointOf(run, name, to);
  const unchecked = await run.requireWhole(checkpoint, isNoOptimizer);
  if (unchecked !== undefined) notify?.(unchecked);
  return checkpoint;
}
