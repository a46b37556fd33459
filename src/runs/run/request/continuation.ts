/** The request to resume a run. */
import { basename, dirname, join, sep } from 'node:path';
import { backendIdentity } from '@drmas/engine/contract';
import { contentHash, requireWhole, SEAL } from '@drmas/engine/disk';
import { CheckpointError, isObject, RunError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { commandText, nodeFiles } from '@drmas/engine/platform';
import { referencePlace, storedReferences } from '../../../method/checkpoints.js';
import type { Tasks } from '../../../method/index.js';
import type { RecipeDefinition } from '../../../method/recipe.js';
import { assignmentOf, backendOfModel, type Recipe, recipeJson } from '../../../method/recipe.js';
import { withoutRemoved } from '../../../method/recipe-files.js';
import { type Checkpoint, REFERENCES, type RunDirectory } from '../../../method/store.js';
import { dataOf } from '../execute/begin-run.js';
import { checkpointNamed } from './checkpoint-names.js';
import { described, type RecipeRequest, resolved } from './new-run.js';
import { changedSince, recipeOfRun } from './recipe-of-run.js';

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
  // A run that was resumed with other rules goes on after its stop.
  const stop = events.findLast(({ type }) => type === 'stop' || type === 'step');
  if (stop?.type !== 'stop') return '';
  return `. training.stopWhen.${stop.rule} ended it at step ${stop.step}; to train on, change the recipe and add --checkpoint ${stop.step} --accept-changes`;
}

/**
 * Compares the references that a resumed run reads with their digests, and changes nothing.
 * @throws CheckpointError naming a file that is damaged, or a reference that is missing; RunError if a reference would
 *   be another one, because settings of the run's beginning have changed
 */
export async function requireReferences(run: RunDirectory, recipe: Recipe): Promise<void> {
  requireSameBeginning(run, recipe);
  const trained = assignmentOf(recipe).trained.map(({ name }) => ({
    name,
    settings: recipe.policies[name],
    backendKey: backendIdentity(backendOfModel(recipe, name)),
  }));
  const warmStartShare = recipe.warmStart?.share;
  for (const name of storedReferences(warmStartShare, trained)) {
    const directory = await referencePlace(nodeFiles, join(run.path, REFERENCES), { warmStartShare, trained }, name);
    if (!(await nodeFiles.exists(directory)))
      throw new CheckpointError(
        `${directory} is missing: a run stores its policies after the warm start if they have a kl then. Give policies.${name}.kl.reference a checkpoint`,
      );
    if ((await requireWhole(nodeFiles, directory)) === 'unsealed' && !(await run.mayLackDigests()))
      throw new CheckpointError(`${join(directory, SEAL)} is missing`);
  }
}

/** A reference may be the policy at the start of reinforcement, which has been made already. */
function requireSameBeginning(run: RunDirectory, { policies, warmStart, seed }: Recipe): void {
  const { warmStart: before, seed: seedBefore } = run.record.resolved;
  // Runs of early versions do not say how they shared their warm start.
  const shareBefore = isObject(before) ? (before.share ?? warmStart?.share) : undefined;
  for (const [name, { kl, model }] of Object.entries(policies)) {
    if (kl?.reference.type !== 'initial') continue;
    const isDrawn = warmStart === undefined && model.type === 'tiny-decoder';
    const [changed] = [
      ...(warmStart?.share === shareBefore ? [] : ['warmStart']),
      ...(isDrawn && seed !== seedBefore ? ['seed'] : []),
    ];
    if (changed !== undefined)
      throw new RunError(
        `${run.path} began with another ${changed}, and the reference of policies.${name}.kl is the policy at its beginning: leave ${changed} as it was, or begin a new run`,
      );
  }
}

/**
 * Compares the tasks, or the files that they are read from, with those that the run began with. Other tasks may be held
 * out then.
 * @throws RunError naming the first file that differs, unless the change is accepted
 */
export async function requireSameData(run: RunDirectory, tasks: Tasks, acceptChanges = false): Promise<void> {
  const [changed] = acceptChanges ? [] : await changedData(run, tasks);
  if (changed !== undefined) throw changedSince(run, `${changed.what} has changed`);
}

/** The files and sets of tasks, on this disk and of hubs, that differ from those that the run began with, in words. */
export async function changedData(
  run: RunDirectory,
  tasks: Tasks,
): Promise<{ readonly what: string; readonly isLocal: boolean }[]> {
  const began = (await run.events()).find((event) => event.type === 'run.started');
  if (began?.type !== 'run.started') return [];
  const before = new Map(began.data?.map((origin) => [origin.name, origin]));
  const digested = began.data?.some(({ files }) => '' in files) === true;
  return (dataOf(tasks, digested).data ?? []).flatMap(({ name, commit, files }) =>
    Object.entries(files).flatMap(([file, sha256]) => {
      const was = before.get(name)?.files[file];
      const isLocal = commit === undefined;
      const ofSource = file === '' ? `the set of tasks ${name}` : `the file of tasks ${name}`;
      const what = isLocal ? ofSource : `${file} of ${name}`;
      return was !== undefined && was !== sha256 ? [{ what, isLocal }] : [];
    }),
  );
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
        : `resume from an older checkpoint with ${commandText(['npx', 'drmas', 'resume', run.path, '--checkpoint', basename(older.directory)])}`;
    throw Object.assign(new CheckpointError(`${error.message}; ${way}`), { cause: error });
  }
  if (changed || moved) {
    const { source, codeHash } = loaded;
    await run.recordRecipe({ source, codeHash }, described(recipe), changed ? (checkpoint?.step ?? 0) : undefined);
  }
  return checkpoint;
}
