/** Training and evaluating from a program of one's own: what the command line does, as functions. */
import type { Device } from '../contract/architecture.js';
import { messageOf } from '../core/errors.js';
import type { EvaluationEvent, MetricSink, RunEvent } from '../core/events.js';
import { type PlayProgress, progressObserver } from '../core/play/play-observer.js';
import { nodeFiles } from '../platform/node-files.js';
import { nodeHost } from '../platform/node-host.js';
import type { RecipeDefinition } from '../recipe/define.js';
import type { Recipe } from '../recipe/recipe.js';
import { RunDirectory } from '../store/run-directory.js';
import { defaultRunPath } from '../store/run-path.js';
import { evaluateCheckpoint, type PlayedEvaluation } from './evaluate-run.js';
import { executeRun } from './execute-run.js';
import { type KeptElsewhere, keptElsewhere } from './kept-elsewhere.js';
import { prepareTasks } from './open-run.js';
import { type OutletOptions, Outlets } from './outlets.js';
import {
  checkpointOf,
  requestContinuation,
  requestEvaluation,
  requestRecipe,
  rewindRun,
  runRecord,
} from './request.js';
import { requireKernels } from './resume-run.js';

/** A run whose request is known to be good, and of which nothing was done yet. */
export interface RunStart {
  readonly recipe: Recipe;
  /** The recipe as it was named: one that ships, a file, or `a program`. */
  readonly source: string;
  /** Overrides as on the command line. */
  readonly overrides: readonly string[];
  /** The run's directory. */
  readonly run: string;
  /** The events that a run which goes on has already. */
  readonly events: readonly RunEvent[];
}

interface Execution extends OutletOptions {
  /** Threads of the engine's kernels; by default one a core. */
  readonly threads?: number;
  /** Interrupts the run. */
  readonly signal?: AbortSignal;
  /**
   * A folder, or `s3://bucket/prefix`, that gets a copy of the run at each checkpoint and at the end: another machine
   * can go on with it. Of S3 it needs `@aws-sdk/client-s3`, and credentials as AWS's tools do.
   */
  readonly store?: string | undefined;
  /** Receives what a person should know but the event log need not keep. */
  readonly onNotice?: (message: string) => void;
  /** Receives how many episodes of a step or an evaluation are over, each time that one ends. */
  readonly onProgress?: (progress: PlayProgress) => void;
  /** Receives the request once it is known to be good, before anything is played. */
  readonly onStart?: (start: RunStart) => void;
  /**
   * Does what must not be cut short once `signal` has fired, such as writing a checkpoint; by default it is simply
   * done.
   */
  readonly protect?: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

/** The options of `train`. */
export interface TrainOptions extends Execution {
  /** The run's directory; by default a new one under `runs/` in the working directory. */
  readonly run?: string;
  /** The seed of sampling and reinforcement. */
  readonly seed?: number;
  /** Overrides as on the command line: `training.steps=20`. */
  readonly set?: readonly string[];
}

/** What `train` and `resume` return. */
export interface TrainResult {
  /** The run's directory. */
  readonly run: string;
  readonly events: readonly RunEvent[];
}

/** The parts of the work that need tasks and models, which tests of the rest replace. */
export interface RunWork {
  readonly prepareTasks: typeof prepareTasks;
  readonly requireKernels: typeof requireKernels;
  readonly executeRun: typeof executeRun;
  readonly evaluateCheckpoint: typeof evaluateCheckpoint;
}

export const runWork: RunWork = { prepareTasks, requireKernels, executeRun, evaluateCheckpoint };

/**
 * Trains a recipe: one that ships (by name), a recipe file (by path), or what `defineRecipe` returned. `drmas resume`
 * cannot find a definition again: call `resume(run, definition)` to go on with such a run.
 * @throws RecipeError, TaskError, RunError before anything is created when the request is wrong; TrainingError or
 *   BackendError when the run fails; the signal's reason when interrupted
 *
 * @example
 * ```ts
 * import { train } from 'drmas';
 *
 * const { run, events } = await train('math', { seed: 2, set: ['training.steps=20'] });
 * ```
 */
export function train(recipe: string | RecipeDefinition, options: TrainOptions = {}): Promise<TrainResult> {
  return trainWith(runWork, recipe, options);
}

/** `train`, with the given work in place of its own. */
export async function trainWith(
  work: RunWork,
  recipe: string | RecipeDefinition,
  options: TrainOptions,
): Promise<TrainResult> {
  const host = hostOf(options);
  const outlets = new Outlets(options, host.notify);
  const request = await requestRecipe(recipe, options);
  const tasks = await work.prepareTasks(request.recipe);
  const path = options.run ?? (await defaultRunPath(request.recipe.name));
  const kept = await keptElsewhere(options.store, path, host, 'new');
  // What was written is remembered here, since a log that somebody deleted meanwhile does not tell.
  let begun = false;
  const beginning: MetricSink = {
    write({ type }) {
      if (type === 'run.started') begun = true;
    },
  };
  outlets.sinks.unshift(beginning);
  const { onCheckpoint } = kept;
  const log = await RunDirectory.create(path, runRecord(request), { sinks: outlets.sinks, onCheckpoint });
  const { loaded, overrides } = request;
  return writing(log, kept, outlets, async () => {
    try {
      await outlets.open(request.recipe, log);
      options.onStart?.({ recipe: request.recipe, source: loaded.source, overrides, run: path, events: [] });
      await work.executeRun(request.recipe, log, outlets.observing(kept.host), { tasks });
    } catch (error) {
      if (begun) throw error;
      await log.close();
      await nodeFiles.remove(path); // nothing was begun in it: a download failed, say, or a model cannot be read
      throw error;
    }
  });
}

/** The options of `resume`. */
export interface ResumeOptions extends Execution {
  /** Go on although the recipe or its code has changed, or other kernels compute. */
  readonly acceptChanges?: boolean;
  /** What computes from now on, in place of what the recipe says; another device than before is a change. */
  readonly device?: Device | undefined;
  /** The checkpoint to go on from, such as `step-000004`, by default the last. What came after it is removed. */
  readonly from?: string;
}

/**
 * Goes on with an interrupted run from its last checkpoint, as if it had never stopped. A run that was begun with what
 * `defineRecipe` returned needs that definition again; of other runs the recipe is found by what recipe.json names.
 * Whether the code of a definition has changed cannot be seen, only whether it resolves to other settings. Of a
 * recipe's file that was moved, `recipe` is the new path.
 * @throws RunError when there is no such run, another process writes it, it is complete, or its recipe has changed;
 *   CheckpointError when the checkpoint is damaged; otherwise as `train`
 *
 * @example
 * ```ts
 * import { resume } from 'drmas';
 *
 * await resume('runs/first');
 * ```
 */
export function resume(
  run: string,
  recipe?: string | RecipeDefinition,
  options: ResumeOptions = {},
): Promise<TrainResult> {
  return resumeWith(runWork, run, recipe, options);
}

/** `resume`, with the given work in place of its own. */
export async function resumeWith(
  work: RunWork,
  path: string,
  given: string | RecipeDefinition | undefined,
  options: ResumeOptions,
): Promise<TrainResult> {
  const host = hostOf(options);
  const outlets = new Outlets(options, host.notify);
  const kept = await keptElsewhere(options.store, path, host);
  const log = await RunDirectory.open(path, { sinks: outlets.sinks, onCheckpoint: kept.onCheckpoint });
  return writing(log, kept, outlets, async () => {
    const { from, acceptChanges } = options;
    const request = await requestContinuation(log, { recipe: given, acceptChanges, from });
    const tasks = await work.prepareTasks(request.recipe);
    if (from !== undefined) await checkpointOf(log, from, 'go on from');
    if (acceptChanges !== true) await work.requireKernels(request.recipe, log, host);
    const checkpoint = await rewindRun(log, request, { from, notify: host.notify });
    const { recipe, loaded, overrides } = request;
    await outlets.open(recipe, log);
    options.onStart?.({ recipe, source: loaded.source, overrides, run: path, events: await log.events() });
    await work.executeRun(recipe, log, outlets.observing(kept.host), { tasks, checkpoint, acceptChanges });
  });
}

/** Works on a run that no other process may write meanwhile. @throws RunError naming the process that does */
async function writing(
  log: RunDirectory,
  kept: KeptElsewhere,
  outlets: Outlets,
  execute: () => Promise<void>,
): Promise<TrainResult> {
  const unguarded = await log.lock();
  const closed = async () => {
    await outlets.close();
    await log.close();
  };
  try {
    if (unguarded !== undefined) kept.host.notify(unguarded);
    await execute();
  } catch (error) {
    await closed();
    await kept.end().catch((second: unknown) => kept.host.notify(messageOf(second)));
    throw error;
  }
  await closed();
  await kept.end();
  return { run: log.path, events: await log.events() };
}

/** The options of `evaluate`. */
export interface EvaluateOptions {
  /** Held-out tasks; by default those of the recipe. */
  readonly tasks?: number;
  /** Episodes a task; by default those of the recipe. */
  readonly samples?: number;
  /** Fields of tasks by which the scores are divided too. */
  readonly by?: readonly string[];
  /** The definition, of a run that was begun with what `defineRecipe` returned; or where the recipe's file lies now. */
  readonly recipe?: string | RecipeDefinition;
  /** Play although the code of the recipe has changed. */
  readonly acceptChanges?: boolean;
  /** Threads of the engine's kernels; by default one a core. */
  readonly threads?: number;
  /** Ends it early, with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Receives what a person should know. */
  readonly onNotice?: (message: string) => void;
  /** Receives how many episodes are over, each time that one ends. */
  readonly onProgress?: (progress: PlayProgress) => void;
}

/**
 * Plays held-out tasks with a run's last checkpoint and the recipe it was trained with. Writes nothing.
 * @throws RunError when there is no run, no checkpoint in it yet, or the code of its recipe has changed;
 *   CheckpointError when the checkpoint is damaged
 *
 * @example
 * ```ts
 * import { evaluate } from 'drmas';
 *
 * const { averageAtK, interval } = await evaluate('runs/first', { tasks: 500, samples: 8 });
 * ```
 */
export async function evaluate(run: string, options: EvaluateOptions = {}): Promise<EvaluationEvent> {
  return (await evaluateWith(runWork, run, options)).event;
}

/** `evaluate` with overrides, with the given work in place of its own, and with what keeps the episodes. */
export async function evaluateWith(
  work: RunWork,
  path: string,
  options: EvaluateOptions & { readonly set?: readonly string[] },
): Promise<PlayedEvaluation & { readonly log: RunDirectory }> {
  const host = hostOf(options);
  const { run: log, recipe, checkpoint } = await requestEvaluation(path, options);
  return { ...(await work.evaluateCheckpoint(recipe, checkpoint, host)), log };
}

const hostOf = ({
  device,
  threads,
  signal,
  protect,
  onNotice: notify,
  onProgress,
}: Execution & Pick<ResumeOptions, 'device'>) =>
  nodeHost({
    device,
    threads,
    signal,
    protect,
    notify,
    observer: onProgress === undefined ? undefined : progressObserver(onProgress),
  });
