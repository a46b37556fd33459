/** A fair comparison of variants: runs in pairs with equal warm starts, tasks and seeds, and intervals over pairs. */

import { join } from 'node:path';
import { contentHash } from '@drmas/engine/disk';
import { messageOf, type OptionNames, RecipeError, RunError, requireKnown, suggestion } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { type Host, type PlayProgress, type RunListener, trainingBudget } from '@drmas/engine/host';
import { isOtherModel } from '@drmas/engine/model';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import type { Tasks } from '../../../method/index.js';
import { type Recipe, type RecipeDefinition, recipeJson } from '../../../method/recipe.js';
import { codeOf, type LoadedRecipe, withoutRemoved } from '../../../method/recipe-files.js';
import {
  ABLATION,
  type AblationRecord,
  defaultRunPath,
  lockRun,
  RunDirectory,
  requireSameAblation,
  writeAblation,
} from '../../../method/store.js';
import {
  type RunSummary,
  summariseRun,
  summariseVariants,
  type VariantSummary,
} from '../../analysis/ablation-summary.js';
import { type ParetoPicture, paretoPicture } from '../../analysis/aims/pareto-front.js';
import {
  LEAST_PAIRS,
  metricDifferences,
  type PairedDifference,
  pairedDifferences,
} from '../../analysis/paired-interval.js';
import { resolveRecipe } from '../../composition/resolve-recipe.js';
import { type RunPlace, startRun, thisProcess } from '../../run/execute/start-run.js';
import { prepareTasks } from '../../run/open/prepare-tasks.js';
import { changedData, requireReferences } from '../../run/request/continuation.js';
import { load, runRecord } from '../../run/request/new-run.js';
import { rememberTyped } from '../../run/request/stored-data.js';
import { functionsListener, type ListenerOptions, RunListeners } from '../../run/run-listeners.js';
import { requestedTrackers } from '../../trackers/index.js';
import { type ComparedOptions, comparedOf, type PlannedRun, plannedRuns } from './ablation-plan.js';
import { runQueue } from './ablation-queue.js';

/**
 * The most runs at once by default. Small models leave most of a machine idle, but more runs only slow each other down.
 */
const MOST_PARALLEL = 4;

/** The events that may come before a run's warm start has ended. */
const BEFORE_REINFORCEMENT: readonly RunEvent['type'][] = ['preparing', 'run.started', 'warning', 'warmup'];

/** The options of `ablate`. */
export interface AblateOptions extends ComparedOptions {
  /** Number of pairs. Default: 6. Pair i has seed i and warm start i. */
  readonly seeds?: number;
  /** The seed of the first pair. Default: 1. Each next pair has the next seed. */
  readonly firstSeed?: number;
  /** The seed of one warm start for all pairs. The intervals then hold for this warm start only. */
  readonly warmStartSeed?: number;
  /** The variant with which the others are compared. Default: the first. */
  readonly baseline?: string;
  /** The named parts of the team's reward that are the axes of a plot of the variants, with the Pareto front. */
  readonly parts?: readonly string[];
  /** Overrides of every run, as on the command line: `training.steps=20`. */
  readonly set?: readonly string[];
  /**
   * The ablation's directory. Default: a new directory under `runs/`. An existing ablation resumes: its finished runs
   * are kept.
   */
  readonly run?: string;
  /** Threads of all runs together. Default: one a core. */
  readonly threads?: number;
  /** Runs at once. Default: the number of threads, at most 4, and 1 if a model comes from a directory. */
  readonly parallel?: number;
  /** Trackers that receive every run's events, such as `tensorboard`. */
  readonly track?: ListenerOptions['track'];
  /** Stops the ablation early. Finished work is kept, and the same call resumes it. */
  readonly signal?: AbortSignal;
  /**
   * Does work that `signal` must not interrupt, such as writing a checkpoint. Default: the work runs without
   * protection.
   */
  readonly protect?: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Receives messages for a person. The event logs do not keep them. */
  readonly onNotice?: (message: string) => void;
  /** Receives the plan once, after the request has been checked. */
  readonly onStart?: (plan: AblationPlan) => void;
  /** Receives each run that begins or resumes, and its earlier events. */
  readonly onBegin?: (run: PlannedRun, before: readonly RunEvent[]) => void;
  /** Receives every event of every run after it was logged. */
  readonly onEvent?: (run: PlannedRun, event: RunEvent) => void;
  /** Receives the number of finished episodes in a run's step or evaluation, after each episode. */
  readonly onProgress?: (run: PlannedRun, progress: PlayProgress) => void;
  /** Receives each run that has ended, also a run that had ended before this call. */
  readonly onEnd?: (run: RunSummary) => void;
}

const OPTIONS: OptionNames<AblateOptions> = {
  ...{ vary: true, variants: true, seeds: true, firstSeed: true, warmStartSeed: true, baseline: true, parts: true },
  ...{ set: true, run: true, threads: true, parallel: true, track: true, signal: true, protect: true, onNotice: true },
  ...{ onStart: true, onBegin: true, onEvent: true, onProgress: true, onEnd: true },
};

/** An ablation with a checked request. */
export interface AblationPlan {
  readonly directory: string;
  /** The runs pair by pair, each with its resolved recipe. */
  readonly runs: readonly (PlannedRun & { readonly recipe: Recipe })[];
  /** Runs at once. */
  readonly parallel: number;
}

/** The result of `ablate`. */
export interface AblationResult {
  /** Contains ablation.json and a directory for each run. */
  readonly directory: string;
  readonly baseline: string;
  readonly runs: readonly RunSummary[];
  readonly variants: readonly VariantSummary[];
  readonly differences: readonly PairedDifference[];
  /** The differences of the team's metrics, by their names. */
  readonly metricDifferences: Readonly<Record<string, readonly PairedDifference[]>>;
  /** The plot of the variants between the given parts of the reward. */
  readonly pareto?: ParetoPicture;
}

/**
 * Trains every variant of a recipe with every seed and compares the variants pair by pair. A run that fails is left out
 * of the comparison and named in the result. The others continue. After an interruption, call it again with the same
 * directory to resume.
 * @throws RecipeError, TaskError, RunError if the request is wrong, before anything is created; the signal's reason if
 *   interrupted
 *
 * @example
 * ```ts
 * import { ablate } from 'drmas';
 *
 * const { differences } = await ablate('math', { vary: { 'advantage.type': ['grpo', 'drmas'] }, seeds: 10 });
 * ```
 */
export async function ablate(recipe: string | RecipeDefinition, options: AblateOptions): Promise<AblationResult> {
  requireKnown(options, OPTIONS);
  return ablateIn(thisProcess, recipe, options);
}

export async function ablateIn(
  place: RunPlace,
  recipe: string | RecipeDefinition,
  options: AblateOptions,
): Promise<AblationResult> {
  const { threads, signal, protect, onNotice: notify } = options;
  const machine = nodeHost({ threads, signal, protect, notify });
  requestedTrackers(options.track ?? []);
  const { run } = options;
  const resumes = run !== undefined && (await nodeFiles.exists(join(run, ABLATION)));
  let lock = resumes ? await lockRun(nodeFiles, run) : undefined;
  try {
    const loaded = await load(recipe);
    const plan = comparisonOf(loaded, options);
    const tasks = new Map<string, Tasks>();
    for (const { variant, recipe } of plan.runs.slice(0, plan.variants.length))
      tasks.set(variant, await prepareTasks(recipe));
    const directory = run ?? (await defaultRunPath(`${loaded.name}-ablation`));
    await rememberTyped(plan.runs.flatMap(({ overrides }) => overrides));
    await requireSameAblation(directory, plan.record);
    for (const run of plan.runs)
      await requireSameRun(join(directory, run.name), loaded, run.recipe, tasks.get(run.variant));
    await writeAblation(directory, plan.record);
    lock ??= await lockRun(nodeFiles, directory);
    if (lock.unguarded !== undefined) machine.notify(lock.unguarded);
    return await performPlan({ place, loaded, directory, host: machine }, plan, options);
  } finally {
    await lock?.release();
  }
}

async function performPlan(
  { host: machine, ...setup }: AblationSetup,
  plan: Comparison,
  options: AblateOptions,
): Promise<AblationResult> {
  const { directory } = setup;
  const { parallel = parallelFor(plan.runs[0]?.recipe, machine.threads) } = options;
  const together = Math.min(parallel, plan.runs.length);
  const host = { ...machine, threads: Math.max(1, Math.floor(machine.threads / together)) };
  options.onStart?.({ directory, runs: plan.runs, parallel: together });
  const runs = await performAll({ ...setup, host }, plan.runs, together, options);

  const { variants } = plan;
  const { baseline } = plan.record;
  const summaries = summariseVariants(runs, variants);
  const { parts } = plan.record;
  const pareto = parts && paretoPicture(summaries, parts);
  const result = {
    baseline,
    runs,
    variants: summaries,
    differences: pairedDifferences(runs, variants, baseline),
    metricDifferences: metricDifferences(runs, variants, baseline),
    ...(pareto === undefined ? {} : { pareto }),
  };
  await writeAblation(directory, { ...plan.record, result });
  return { directory, ...result };
}

type ResolvedRun = AblationPlan['runs'][number];

interface Comparison {
  readonly variants: readonly string[];
  readonly runs: readonly ResolvedRun[];
  readonly record: AblationRecord;
}

/** The runs of the options, each with its recipe. @throws RecipeError */
function comparisonOf(loaded: LoadedRecipe, options: AblateOptions): Comparison {
  const { set = [], seeds = LEAST_PAIRS, firstSeed = 1, warmStartSeed } = options;
  const { definition, name } = loaded;
  const resolve = (overrides: readonly string[]) =>
    resolveRecipe(definition, { overrides, name, code: codeOf(loaded) });
  const compared = comparedOf(options);
  const hasWarmStart = (overrides: readonly string[]) => resolve(overrides).warmStart !== undefined;
  const planned = plannedRuns({ ...compared, seeds, firstSeed, warmStartSeed, set, hasWarmStart });
  const variants = [...new Set(planned.map(({ variant }) => variant))];
  const { baseline = variants[0] ?? '' } = options;
  if (!variants.includes(baseline))
    throw new RecipeError(`there is no variant '${baseline}'${suggestion(baseline, variants)}`, 'baseline');
  const record: AblationRecord = {
    version: 1,
    recipe: { source: loaded.source, codeHash: loaded.codeHash, overrides: set },
    vary: compared.vary,
    ...(compared.bundles.length === 0 ? {} : { bundles: compared.bundles }),
    ...(options.parts === undefined ? {} : { parts: options.parts }),
    seeds,
    ...(firstSeed === 1 ? {} : { firstSeed }),
    ...(warmStartSeed === undefined ? {} : { warmStartSeed }),
    baseline,
  };
  return { variants, runs: planned.map((run) => ({ ...run, recipe: resolve(run.overrides) })), record };
}

/**
 * Trains the runs, `together` at once. Runs with one warm start wait until the first of them has written it to the
 * cache.
 */
async function performAll(
  setup: AblationSetup,
  runs: readonly ResolvedRun[],
  together: number,
  options: AblateOptions,
): Promise<RunSummary[]> {
  const summaries = new Map<string, RunSummary>();
  const jobs = runs.map((run) => ({
    lane: `warm start ${run.recipe.warmStart === undefined ? run.name : run.recipe.warmStart.seed}`,
    run: async (openLane: () => void) => {
      const summary = await perform(setup, run, options, openLane);
      summaries.set(run.name, summary);
      options.onEnd?.(summary);
    },
  }));
  await runQueue(jobs, together);
  return runs.flatMap(({ name }) => summaries.get(name) ?? []);
}

interface AblationSetup {
  readonly place: RunPlace;
  readonly loaded: LoadedRecipe;
  readonly directory: string;
  readonly host: Host;
}

/**
 * Trains or resumes one run to its end. A run that fails has a summary too. Only an interruption is an error.
 */
async function perform(
  { place, loaded, directory, host }: AblationSetup,
  planned: ResolvedRun,
  options: AblateOptions,
  openLane: () => void,
): Promise<RunSummary> {
  const { signal } = host;
  signal.throwIfAborted();
  const path = join(directory, planned.name);
  const listeners = new RunListeners([listenerOf(planned, options, openLane)], { track: options.track ?? [] });
  const listening = { listeners: [listeners.together] };
  const begun = await nodeFiles.exists(join(path, 'recipe.json'));
  const run = begun
    ? await RunDirectory.open(path, listening)
    : await RunDirectory.create(path, runRecord({ loaded, ...planned }), listening);
  const before = await run.events();
  if (before.some((event) => event.type === 'run.finished' && event.reason === 'completed'))
    return summaryOf(planned, before);
  let failure: string | undefined;
  try {
    await startRun(run, { place, host, listeners }, async () => {
      const checkpoint = await run.latestCheckpoint();
      if (checkpoint !== undefined) await requireReferences(run, planned.recipe);
      if (begun) await run.rewind(checkpoint);
      const recipe = { ...planned.recipe, sinks: [] };
      return { recipe, checkpoint, onReady: (events) => options.onBegin?.(planned, events) };
    });
  } catch (error) {
    if (signal.aborted) throw error;
    failure = messageOf(error);
  }
  signal.throwIfAborted();
  return summaryOf(planned, await run.events(), failure);
}

/** The caller's functions as a listener to one run. The run's lane opens when its warm start is in the cache. */
function listenerOf(
  planned: PlannedRun,
  { onEvent, onProgress, onNotice }: AblateOptions,
  openLane: () => void,
): RunListener {
  const functions = { onNotice, onProgress: onProgress && ((progress: PlayProgress) => onProgress(planned, progress)) };
  return {
    ...functionsListener(functions),
    event(event) {
      if (!BEFORE_REINFORCEMENT.includes(event.type)) openLane();
      onEvent?.(planned, event);
    },
  };
}

/** Requires that a directory is free or holds the same run, of the same tasks. @throws RunError if it does not */
async function requireSameRun(
  path: string,
  { codeHash }: LoadedRecipe,
  recipe: Recipe,
  tasks: Tasks | undefined,
): Promise<void> {
  if (!(await nodeFiles.exists(join(path, 'recipe.json')))) return;
  const run = await RunDirectory.open(path);
  const { record } = run;
  if (
    record.recipe.codeHash !== codeHash ||
    contentHash(withoutRemoved(record.resolved)) !== contentHash(recipeJson(recipe))
  )
    throw new RunError(`${path} was made with other settings; choose another directory with --run`);
  // A run that resumes takes a hub's data as it was when it began.
  const changed = tasks && (await changedData(run, tasks)).find(({ isLocal }) => isLocal);
  if (changed !== undefined)
    throw new RunError(`${changed.what} has changed since ${path} was started; choose another directory with --run`);
}

function parallelFor(recipe: Recipe | undefined, threads: number): number {
  const models = Object.values(recipe?.policies ?? {}).map(({ model }) => model);
  return models.every((model) => model.type === 'tiny-decoder' || isOtherModel(model))
    ? Math.min(threads, MOST_PARALLEL)
    : 1;
}

/** The summary of an ablation's run. It includes the training budget if all policies are whole models. */
function summaryOf(
  planned: PlannedRun & { readonly recipe: Recipe },
  events: readonly RunEvent[],
  failure?: string,
): RunSummary {
  const { assign, policies } = planned.recipe;
  const whole = Object.entries(assign).flatMap(([agent, policy]) =>
    typeof policy === 'string' && policies[policy]?.model.type !== 'lora' ? [[agent, policy] as const] : [],
  );
  const budget = trainingBudget(events, Object.fromEntries(whole));
  return { ...summariseRun(planned, events, failure), ...(budget === undefined ? {} : { budget }) };
}
