/** Training and evaluating from a program of one's own: what the command line does, as functions. */
import { availableParallelism } from 'node:os';
import { RunError } from '../core/errors.js';
import type { EvaluationEvent, MetricSink, RunEvent } from '../core/events.js';
import type { RecipeDefinition } from '../recipe/define.js';
import { type LoadedRecipe, loadRecipe } from '../recipe/load.js';
import { type Recipe, recipeJson } from '../recipe/recipe.js';
import { resolveRecipe } from '../recipe/resolve.js';
import type { RunRecord } from '../runs/record.js';
import { defaultRunPath, RunDirectory } from '../runs/run-directory.js';
import { evaluateCheckpoint, executeRun } from './run.js';
import { prepareTasks } from './session.js';

export interface TrainOptions {
  /** The run's directory; by default a new one under `runs/` in the working directory. */
  readonly run?: string;
  /** Of sampling and reinforcement. */
  readonly seed?: number;
  /** Overrides as on the command line: `training.steps=20`. */
  readonly set?: readonly string[];
  /** Threads of the engine's kernels; by default one a core. */
  readonly threads?: number;
  /** Receive every event after it was logged. */
  readonly sinks?: readonly MetricSink[];
  readonly signal?: AbortSignal;
  /** Told what a person should know but the event log need not keep. */
  readonly onNotice?: (message: string) => void;
}

export interface TrainResult {
  /** The run's directory. */
  readonly run: string;
  readonly events: readonly RunEvent[];
}

/**
 * Trains a recipe: one that ships (by name), a recipe file (by path), or what `defineRecipe` returned (such a run cannot be
 * resumed from the command line, which would not know where to find it).
 * @throws RecipeError, TaskError, RunError before anything is created when the request is wrong; TrainingError or
 *   BackendError when the run fails; the signal's reason when interrupted
 */
export async function train(recipe: string | RecipeDefinition, options: TrainOptions = {}): Promise<TrainResult> {
  const { seed, set = [], threads = availableParallelism(), sinks = [], signal, onNotice = () => {} } = options;
  const overrides = [...set, ...(seed === undefined ? [] : [`seed=${seed}`])];
  const loaded = await load(recipe);
  const resolved = resolveRecipe(loaded.definition, { overrides, name: loaded.name });
  await prepareTasks(resolved);
  const path = options.run ?? (await defaultRunPath(resolved.name));
  const run = await RunDirectory.create(path, runRecord(loaded, overrides, resolved), { sinks });
  await executeRun(resolved, run, { threads, signal, onNotice });
  return { run: path, events: await run.events() };
}

export interface EvaluateOptions {
  /** Held-out tasks and episodes a task; by default those of the recipe. */
  readonly tasks?: number;
  readonly samples?: number;
  readonly threads?: number;
  readonly signal?: AbortSignal;
}

/**
 * Plays held-out tasks with a run's last checkpoint and the recipe it was trained with. Writes nothing.
 * @throws RunError when there is no run, or no checkpoint in it yet
 */
export async function evaluate(run: string, options: EvaluateOptions = {}): Promise<EvaluationEvent> {
  const { tasks, samples, threads = availableParallelism(), signal } = options;
  const directory = await RunDirectory.open(run);
  const checkpoint = await directory.latestCheckpoint();
  if (checkpoint === undefined) throw new RunError(`${run} has no checkpoint to evaluate`);
  const { source, overrides } = directory.record.recipe;
  const loaded = await loadRecipe(source);
  const counts = Object.entries({ tasks, samples }).flatMap(([key, value]) =>
    value === undefined ? [] : [`evaluation.${key}=${value}`],
  );
  const recipe = resolveRecipe(loaded.definition, { overrides: [...overrides, ...counts], name: loaded.name });
  return (await evaluateCheckpoint(recipe, checkpoint, { threads, signal })).event;
}

/** What recipe.json is to hold. */
export function runRecord(loaded: LoadedRecipe, overrides: readonly string[], recipe: Recipe): RunRecord {
  const { source, codeHash } = loaded;
  return { version: 1, recipe: { source, overrides, codeHash }, resolved: recipeJson(recipe), acceptedChanges: [] };
}

/** A recipe that ships, a recipe file, or one that a program made. @throws RecipeError */
export async function load(recipe: string | RecipeDefinition): Promise<LoadedRecipe> {
  if (typeof recipe === 'string') return loadRecipe(recipe);
  return { definition: recipe, name: recipe.input.name ?? recipe.input.team.name, source: 'a program', codeHash: '' };
}
