/** Training and evaluating from a program of one's own: what the command line does, as functions. */
import type { EvaluationEvent, MetricSink, RunEvent } from '../core/events.js';
import { nodeHost } from '../platform/node-host.js';
import type { RecipeDefinition } from '../recipe/define.js';
import { defaultRunPath, RunDirectory } from '../store/run-directory.js';
import { evaluateCheckpoint, executeRun } from './execute-run.js';
import { prepareTasks } from './open-run.js';
import { reopenRun, requestContinuation, requestEvaluation, requestRecipe, runRecord } from './request.js';

interface Execution {
  /** Threads of the engine's kernels; by default one a core. */
  readonly threads?: number;
  /** Receive every event after it was logged. */
  readonly sinks?: readonly MetricSink[];
  readonly signal?: AbortSignal;
  /** Told what a person should know but the event log need not keep. */
  readonly onNotice?: (message: string) => void;
}

export interface TrainOptions extends Execution {
  /** The run's directory; by default a new one under `runs/` in the working directory. */
  readonly run?: string;
  /** Of sampling and reinforcement. */
  readonly seed?: number;
  /** Overrides as on the command line: `training.steps=20`. */
  readonly set?: readonly string[];
}

export interface TrainResult {
  /** The run's directory. */
  readonly run: string;
  readonly events: readonly RunEvent[];
}

/**
 * Trains a recipe: one that ships (by name), a recipe file (by path), or what `defineRecipe` returned. The command line would
 * not know where to find the last kind again: `resume` goes on with such a run.
 * @throws RecipeError, TaskError, RunError before anything is created when the request is wrong; TrainingError or
 *   BackendError when the run fails; the signal's reason when interrupted
 */
export async function train(recipe: string | RecipeDefinition, options: TrainOptions = {}): Promise<TrainResult> {
  const { threads, sinks = [], signal, onNotice: notify } = options;
  const host = nodeHost({ threads, signal, notify });
  const request = await requestRecipe(recipe, options);
  const tasks = await prepareTasks(request.recipe);
  const path = options.run ?? (await defaultRunPath(request.recipe.name));
  const run = await RunDirectory.create(path, runRecord(request), { sinks });
  await executeRun(request.recipe, run, host, { tasks });
  return { run: path, events: await run.events() };
}

export interface ResumeOptions extends Execution {
  /** Go on although the recipe or its code has changed. */
  readonly acceptChanges?: boolean;
}

/**
 * Goes on with an interrupted run from its last checkpoint, as if it had never stopped. A run that was begun with what
 * `defineRecipe` returned needs that definition again; of other runs the recipe is found by what recipe.json names. Whether the
 * code of a definition has changed cannot be seen, only whether it resolves to other settings.
 * @throws RunError when there is no such run, it is complete, or its recipe has changed; otherwise as `train`
 */
export async function resume(
  run: string,
  definition?: RecipeDefinition,
  options: ResumeOptions = {},
): Promise<TrainResult> {
  const { threads, sinks = [], signal, onNotice: notify, acceptChanges } = options;
  const host = nodeHost({ threads, signal, notify });
  const request = await requestContinuation(run, { definition, acceptChanges });
  const tasks = await prepareTasks(request.recipe);
  const { run: directory, checkpoint } = await reopenRun(request, sinks);
  await executeRun(request.recipe, directory, host, { tasks, checkpoint });
  return { run, events: await directory.events() };
}

export interface EvaluateOptions {
  /** Held-out tasks and episodes a task; by default those of the recipe. */
  readonly tasks?: number;
  readonly samples?: number;
  /** Fields of tasks by which the scores are divided too. */
  readonly by?: readonly string[];
  /** Of a run that was begun with what `defineRecipe` returned: that definition. */
  readonly recipe?: RecipeDefinition;
  readonly threads?: number;
  readonly signal?: AbortSignal;
}

/**
 * Plays held-out tasks with a run's last checkpoint and the recipe it was trained with. Writes nothing.
 * @throws RunError when there is no run, or no checkpoint in it yet
 */
export async function evaluate(run: string, options: EvaluateOptions = {}): Promise<EvaluationEvent> {
  const { recipe: definition, threads, signal } = options;
  const { recipe, checkpoint } = await requestEvaluation(run, { ...options, definition });
  return (await evaluateCheckpoint(recipe, checkpoint, nodeHost({ threads, signal }))).event;
}
