/** Training and evaluation from a program: the functions behind the command line. */

import { basename, dirname, join } from 'node:path';
import type { EngineDevice } from '@drmas/engine/contract';
import { messageOf, type OptionNames, RunError, requireKnown } from '@drmas/engine/errors';
import type { RunEvent, ScoredEvaluation } from '@drmas/engine/events';
import type { PlayProgress, RunListener } from '@drmas/engine/host';
import type { Episode } from '@drmas/engine/nouns';
import { nodeFiles, nodeHost, temporaryName } from '@drmas/engine/platform';
import { commitsOf } from '../../method/checkpoints.js';
import type { Recipe, RecipeDefinition } from '../../method/recipe.js';
import {
  defaultRunPath,
  RunDirectory,
  type RunDirectoryOptions,
  storedEpisode,
  writeEpisodes,
} from '../../method/store.js';
import type { PlayedEvaluation } from './execute/evaluate-run.js';
import { type PreparedRun, type RunPlace, startRun, thisProcess } from './execute/start-run.js';
import type { LoadTeamOptions } from './load-team.js';
import { prepareTasks } from './open/prepare-tasks.js';
import { checkpointOf } from './request/checkpoint-names.js';
import { requestContinuation, requireSameData, rewindRun } from './request/continuation.js';
import { requestBaseline, requestEvaluation } from './request/evaluation.js';
import { type RecipeRequest, requestRecipe, runRecord } from './request/new-run.js';
import { rememberTyped } from './request/stored-data.js';
import { functionsListener, type ListenerOptions, RunListeners } from './run-listeners.js';
import { openRunStore, type RunStore } from './run-store.js';

/** A run whose request was checked. Nothing was played yet. */
export interface RunStart {
  readonly recipe: Recipe;
  /** The recipe as it was named: a recipe that ships, a file, or `a program`. */
  readonly source: string;
  /** Overrides as on the command line. */
  readonly overrides: readonly string[];
  /** The run's directory. */
  readonly run: string;
  /** The events that a resumed run already has. */
  readonly events: readonly RunEvent[];
}

interface Execution extends ListenerOptions {
  /** Threads of the engine's kernels; by default one per core. */
  readonly threads?: number;
  /** Interrupts the run. */
  readonly signal?: AbortSignal;
  /**
   * A folder, or `s3://bucket/prefix`, that gets a copy of the run at each checkpoint and at the end: another machine
   * can resume the run. S3 needs the package `@aws-sdk/client-s3`, and credentials as for AWS's tools.
   */
  readonly store?: string | undefined;
  /** Receives notices for people, which the event log need not keep. */
  readonly onNotice?: (message: string) => void;
  /** Receives the number of ended episodes of a step or an evaluation, whenever one ends. */
  readonly onProgress?: (progress: PlayProgress) => void;
  /** Receives the request after it was checked, before anything is played. */
  readonly onStart?: (start: RunStart) => void;
  /**
   * Does work that must not be cut short after `signal` has fired, such as writing a checkpoint. By default the work is
   * done without protection.
   */
  readonly protect?: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

const EXECUTION: OptionNames<Execution> = {
  ...{ threads: true, signal: true, store: true, protect: true, sinks: true, track: true },
  ...{ onNotice: true, onProgress: true, onStart: true },
};

/** The options of `train`. */
export interface TrainOptions extends Execution {
  /** The run's directory; by default a new one under `runs/` in the working directory. */
  readonly run?: string;
  /** The seed of sampling and reinforcement. */
  readonly seed?: number;
  /** Overrides as on the command line: `training.steps=20`. */
  readonly set?: readonly string[];
}

/** The result of `train` and `resume`. */
export interface TrainResult {
  /** The run's directory. */
  readonly run: string;
  readonly events: readonly RunEvent[];
}

/**
 * Trains a recipe: one that ships (by name), a recipe file (by path), or the result of `defineRecipe`. `drmas resume`
 * cannot find such a definition again; call `resume(run, definition)` to resume the run.
 * @throws RecipeError, TaskError, RunError, ArgumentError, StoreError, CheckpointError or TokenizerError when the
 *   request or a model's files are wrong, and no directory is left; TrainingError or BackendError when the run fails;
 *   the signal's reason when interrupted
 *
 * @example
 * ```ts
 * import { train } from 'drmas';
 *
 * const { run, events } = await train('math', { seed: 2, set: ['training.steps=20'] });
 * ```
 */
export async function train(recipe: string | RecipeDefinition, options: TrainOptions = {}): Promise<TrainResult> {
  requireKnown<TrainOptions>(options, { ...EXECUTION, run: true, seed: true, set: true });
  return trainIn(thisProcess, recipe, options);
}

export async function trainIn(
  place: RunPlace,
  recipe: string | RecipeDefinition,
  options: TrainOptions,
): Promise<TrainResult> {
  // The log may be deleted during the run, so a listener remembers whether the run began.
  let begun = false;
  const beginning: RunListener = {
    event({ type }) {
      if (type === 'run.started') begun = true;
    },
  };
  const { host, listeners } = surroundings(options, [beginning]);
  const request = await requestRecipe(recipe, options);
  await rememberTyped(options.set ?? []);
  const tasks = await prepareTasks(request.recipe, undefined, host);
  const path = options.run ?? (await defaultRunPath(request.recipe.name));
  const store = await openRunStore(options.store, path, host, 'new');
  const log = await RunDirectory.create(path, runRecord(request), logOptions(store, listeners));
  return result(log, store, async () => {
    try {
      const { recipe } = request;
      const onReady = startOf(options, request, path);
      await startRun(log, { place, host: store.host, listeners }, async () => ({ recipe, tasks, onReady }));
    } catch (error) {
      if (!begun) await nodeFiles.remove(path); // a download failed, for example, or a model cannot be read
      throw error;
    }
  });
}

/** The options of `resume`. */
export interface ResumeOptions extends Execution {
  /** Resume although the recipe, its code or the kernels have changed. */
  readonly acceptChanges?: boolean;
  /** The device that computes from now on, instead of the recipe's. Another device than before is a change. */
  readonly device?: EngineDevice | undefined;
  /**
   * The checkpoint to resume from, such as `step-000004` or `best`, by default the last. Later checkpoints and events
   * are removed.
   */
  readonly from?: string;
}

/**
 * Resumes an interrupted run from its last checkpoint. The result is the same as without the interruption. If the run
 * was started with the result of `defineRecipe`, pass that definition again. The recipe of any other run is found by
 * the path in recipe.json; if that file was moved, `recipe` is its new path. drmas cannot see whether the code of a
 * definition has changed, only whether it resolves to other settings.
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
export async function resume(
  run: string,
  recipe?: string | RecipeDefinition,
  options: ResumeOptions = {},
): Promise<TrainResult> {
  requireKnown<ResumeOptions>(options, { ...EXECUTION, acceptChanges: true, device: true, from: true });
  return resumeIn(thisProcess, run, recipe, options);
}

export async function resumeIn(
  place: RunPlace,
  path: string,
  given: string | RecipeDefinition | undefined,
  options: ResumeOptions,
): Promise<TrainResult> {
  const { host, listeners } = surroundings(options);
  const store = await openRunStore(options.store, path, host);
  const log = await RunDirectory.open(path, logOptions(store, listeners));
  const { from, acceptChanges } = options;
  let isPrepared = false;
  const prepare = async (): Promise<PreparedRun> => {
    const request = await requestContinuation(log, { recipe: given, acceptChanges, from });
    const { recipe } = request;
    const start = from === undefined ? await log.latestCheckpoint() : await checkpointOf(log, from, 'resume from');
    // `rewindRun` reports a damaged checkpoint, with an older one.
    const commits = await commitsOf(host.files, start).catch(() => ({}));
    const tasks = await prepareTasks(recipe, undefined, { ...host, commits });
    await requireSameData(log, tasks, acceptChanges);
    if (acceptChanges !== true) await place.requireKernels(recipe, log, host);
    const checkpoint = await rewindRun(log, request, { from, notify: host.notify });
    isPrepared = true;
    return { recipe, tasks, checkpoint, acceptChanges, onReady: startOf(options, request, path) };
  };
  const execute = () => startRun(log, { place, host: store.host, listeners }, prepare);
  return result(log, store, execute, () => isPrepared);
}
/** The machine of a run, and its listeners: the program's functions, then `more`, then the sinks of the options. */
function surroundings(options: Execution & Pick<ResumeOptions, 'device'>, more: readonly RunListener[] = []) {
  const listeners = new RunListeners([functionsListener(options), ...more], options);
  const { device, threads, signal, protect } = options;
  return { listeners, host: nodeHost({ device, threads, signal, protect, notify: listeners.notify }) };
}

const logOptions = ({ onCheckpoint }: RunStore, { together }: RunListeners): RunDirectoryOptions => ({
  listeners: [together],
  onCheckpoint,
});

const startOf =
  ({ onStart }: Execution, { recipe, loaded, overrides }: RecipeRequest, run: string) =>
  (events: readonly RunEvent[]) =>
    onStart?.({ recipe, source: loaded.source, overrides, run, events });

/**
 * Executes a run and updates its copy in the store, however the run ends.
 * @param hasBegun Whether the run may have changed. The copy of a run that was refused stays as it is
 */
async function result(
  log: RunDirectory,
  store: RunStore,
  execute: () => Promise<void>,
  hasBegun = () => true,
): Promise<TrainResult> {
  try {
    await execute();
  } catch (error) {
    if (hasBegun()) await store.end().catch((second: unknown) => store.host.notify(messageOf(second)));
    throw error;
  }
  await store.end();
  return { run: log.path, events: await log.events() };
}

/** The options of `evaluate`. */
export interface EvaluateOptions extends LoadTeamOptions {
  /** The number of held-out tasks; by default the recipe's. */
  readonly tasks?: number;
  /** Episodes for each task; by default the recipe's number. */
  readonly samples?: number;
  /** Fields of tasks; the scores are also given for each of their values. */
  readonly by?: readonly string[];
  /** Stops it early, with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Receives the number of ended episodes, whenever one ends. */
  readonly onProgress?: (progress: PlayProgress) => void;
}

const EVALUATE: OptionNames<EvaluateOptions> = {
  ...{ tasks: true, samples: true, by: true, checkpoint: true, recipe: true, acceptChanges: true },
  ...{ threads: true, signal: true, onNotice: true, onProgress: true },
};

/**
 * Plays held-out tasks with a checkpoint of a run, by default the last, and the recipe it was trained with. Given a
 * recipe (a name, a file or the result of `defineRecipe`), it plays before any training: the baseline; all agents may
 * be frozen. Writes nothing but a warm start's cache.
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
export async function evaluate(
  run: string | RecipeDefinition,
  options: EvaluateOptions = {},
): Promise<ScoredEvaluation> {
  requireKnown(options, EVALUATE);
  const { checkpoint, ...rest } = options;
  return (await evaluateRun(run, { ...rest, from: checkpoint?.toString() })).event;
}

/**
 * `evaluate` with overrides and the place that plays. Also returns the episodes, and how to store them.
 * @throws RunError also when `episodes` exists, or is given with a run
 */
export async function evaluateRun(
  path: string | RecipeDefinition,
  options: Omit<EvaluateOptions, 'checkpoint'> & {
    readonly set?: readonly string[];
    readonly from?: string | undefined;
    /** The new file for the episodes of a recipe. Default: a file below `runs/`. */
    readonly episodes?: string | undefined;
  },
  place: RunPlace = thisProcess,
): Promise<PlayedEvaluation & { readonly keep: (now: Date) => Promise<string> }> {
  const { threads, signal, onNotice: notify } = options;
  const host = nodeHost({ threads, signal, notify, listener: functionsListener(options) });
  const baseline = await requestBaseline(path, options);
  if (options.episodes !== undefined && baseline === undefined) {
    await RunDirectory.open(path as string); // a mistyped recipe is no run either, and this says so
    throw new RunError('--episodes is for a recipe; a run keeps its episodes in its directory');
  }
  if (options.episodes !== undefined && (await nodeFiles.exists(options.episodes)))
    throw new RunError(`${options.episodes} exists; --episodes needs the name of a new file`);
  if (baseline !== undefined) {
    const played = await place.evaluateCheckpoint(baseline, undefined, host);
    return { ...played, keep: () => writeBaseline(baseline.name, played.episodes, options.episodes) };
  }
  const request = { ...options, notify: host.notify };
  return requestEvaluation(path as string, request, async ({ run, recipe, checkpoint }) => {
    const played = await place.evaluateCheckpoint(recipe, checkpoint, host);
    return { ...played, keep: (now) => run.writeOtherEpisodes(played.episodes, now) };
  });
}

/**
 * Stores the episodes of a recipe's evaluation as a new file below `runs/`, which appears whole or not at all.
 * @returns The path
 */
async function writeBaseline(recipe: string, episodes: readonly Episode[], file: string | undefined): Promise<string> {
  const path = file ?? (await defaultRunPath(`${recipe}-evaluation`, { extension: '.jsonl' }));
  const temporary = join(dirname(path), temporaryName(basename(path)));
  await nodeFiles.makeDirectory(dirname(path));
  try {
    await writeEpisodes(
      nodeFiles,
      temporary,
      episodes.map((episode) => storedEpisode(episode)),
    );
    await nodeFiles.rename(temporary, path);
  } catch (error) {
    await nodeFiles.remove(temporary);
    throw error;
  }
  return path;
}
