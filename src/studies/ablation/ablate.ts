/** A fair comparison of variants: runs in pairs with equal warm starts, tasks and seeds, and intervals over pairs. */
import { join } from 'node:path';
import { messageOf, RecipeError, RunError } from '../../core/errors.js';
import type { RunEvent } from '../../core/events.js';
import type { Host } from '../../core/host.js';
import { type PlayProgress, progressObserver } from '../../core/play/play-observer.js';
import { nodeFiles } from '../../platform/node-files.js';
import { nodeHost } from '../../platform/node-host.js';
import type { RecipeDefinition } from '../../recipe/define.js';
import { suggestion } from '../../recipe/explain.js';
import { codeOf, type LoadedRecipe } from '../../recipe/load-recipe.js';
import { type Recipe, recipeJson } from '../../recipe/recipe.js';
import { resolveRecipe } from '../../recipe/resolve.js';
import { type RunSummary, summariseVariants, type VariantSummary } from '../../report/analysis/ablation-summary.js';
import { type ParetoPicture, paretoPicture } from '../../report/analysis/aims/pareto-front.js';
import {
  metricDifferences,
  type PairedDifference,
  pairedDifferences,
} from '../../report/analysis/paired-differences.js';
import { executeRun } from '../../run/execute-run.js';
import { prepareTasks } from '../../run/open-run.js';
import { type OutletOptions, Outlets } from '../../run/outlets.js';
import { load, runRecord } from '../../run/request.js';
import { type AblationRecord, requireSameAblation, writeAblation } from '../../store/ablation-record.js';
import { contentHash } from '../../store/files/content-hash.js';
import { RunDirectory } from '../../store/run-directory.js';
import { defaultRunPath } from '../../store/run-path.js';
import { requestedTrackers } from '../../trackers/index.js';
import { type ComparedOptions, comparedOf, type PlannedRun, plannedRuns } from './ablation-plan.js';
import { runQueue } from './ablation-queue.js';
import { summaryOf } from './summary-of-run.js';

/** The most runs at once by default: small models leave most of a machine idle, but more runs only crowd each other. */
const MOST_PARALLEL = 4;

/** The events that may come before a run's warm start has ended. */
const BEFORE_REINFORCEMENT: readonly RunEvent['type'][] = ['run.started', 'warning', 'warmup'];

/** The options of `ablate`. */
export interface AblateOptions extends ComparedOptions {
  /** Number of pairs, default 5; pair i has seed i and warm start i. */
  readonly seeds?: number;
  /** The seed of the first pair, default 1; the next one has the seed after it. */
  readonly firstSeed?: number;
  /** The same warm start for all pairs: the intervals then hold for that warm start alone. */
  readonly warmStartSeed?: number;
  /** The variant that the others are compared with; by default the first. */
  readonly baseline?: string;
  /** Named parts of the team's reward between which the variants are drawn: the Pareto front. */
  readonly parts?: readonly string[];
  /** Overrides of every run, as on the command line: `training.steps=20`. */
  readonly set?: readonly string[];
  /**
   * The ablation's directory; by default a new one under `runs/`. An ablation that is there goes on: its finished runs
   * are kept.
   */
  readonly run?: string;
  /** Threads of all runs together; by default one a core. */
  readonly threads?: number;
  /** Runs at once; by default as many as there are threads, at most 4, and 1 where a model comes from a directory. */
  readonly parallel?: number;
  /** Trackers that every run tells its events, such as `tensorboard`. */
  readonly track?: OutletOptions['track'];
  /** Ends it early; what is done is kept, and the same call goes on. */
  readonly signal?: AbortSignal;
  /** Does what must not be cut short by `signal`, such as writing a checkpoint; by default it is simply done. */
  readonly protect?: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Receives what a person should know but the event logs need not keep. */
  readonly onNotice?: (message: string) => void;
  /** Receives the plan once, when the request is known to be good. */
  readonly onStart?: (plan: AblationPlan) => void;
  /** Receives every run that begins or goes on, and the events that it has already. */
  readonly onBegin?: (run: PlannedRun, before: readonly RunEvent[]) => void;
  /** Receives every event of every run after it was logged. */
  readonly onEvent?: (run: PlannedRun, event: RunEvent) => void;
  /** Receives how many episodes of a run's step or evaluation are over, each time that one ends. */
  readonly onProgress?: (run: PlannedRun, progress: PlayProgress) => void;
  /** Receives every run that has ended, those that had ended before too. */
  readonly onEnd?: (run: RunSummary) => void;
}

/** An ablation whose request is known to be good. */
export interface AblationPlan {
  readonly directory: string;
  /** The runs pair by pair, each with what its recipe resolves to. */
  readonly runs: readonly (PlannedRun & { readonly recipe: Recipe })[];
  /** Runs at once. */
  readonly parallel: number;
}

/** What `ablate` returns. */
export interface AblationResult {
  /** Holds ablation.json and a run directory for each run. */
  readonly directory: string;
  readonly baseline: string;
  readonly runs: readonly RunSummary[];
  readonly variants: readonly VariantSummary[];
  readonly differences: readonly PairedDifference[];
  /** The differences of the team's metrics, by their names. */
  readonly metricDifferences: Readonly<Record<string, readonly PairedDifference[]>>;
  /** The variants between the named parts that were asked for. */
  readonly pareto?: ParetoPicture;
}

/** The parts that tests replace. */
export interface AblateWork {
  readonly prepareTasks: typeof prepareTasks;
  readonly executeRun: typeof executeRun;
}

/**
 * Trains every variant of a recipe with every seed and compares them pair by pair. A run that fails is left out of the
 * comparison and named in the result; the others go on. Interrupted, it can be called again with the same directory.
 * @throws RecipeError, TaskError, RunError before anything is created when the request is wrong; the signal's reason
 *   when interrupted
 *
 * @example
 * ```ts
 * import { ablate } from 'drmas';
 *
 * const { differences } = await ablate('math', { vary: { 'advantage.type': ['grpo', 'drmas'] }, seeds: 5 });
 * ```
 */
export function ablate(recipe: string | RecipeDefinition, options: AblateOptions): Promise<AblationResult> {
  return ablateWith({ prepareTasks, executeRun }, recipe, options);
}

/** `ablate`, with the given work in place of its own. */
export async function ablateWith(
  work: AblateWork,
  recipe: string | RecipeDefinition,
  options: AblateOptions,
): Promise<AblationResult> {
  const { threads, signal, protect, onNotice: notify } = options;
  const machine = nodeHost({ threads, signal, protect, notify });
  requestedTrackers(options.track ?? []);
  const loaded = await load(recipe);
  const plan = comparisonOf(loaded, options);
  for (const { recipe } of plan.runs.slice(0, plan.variants.length)) await work.prepareTasks(recipe);

  const directory = options.run ?? (await defaultRunPath(`${loaded.name}-ablation`));
  await requireSameAblation(directory, plan.record);
  for (const run of plan.runs) await requireSameRun(join(directory, run.name), loaded, run.recipe);
  await writeAblation(directory, plan.record);

  const { parallel = parallelFor(plan.runs[0]?.recipe, machine.threads) } = options;
  const together = Math.min(parallel, plan.runs.length);
  const host = { ...machine, threads: Math.max(1, Math.floor(machine.threads / together)) };
  options.onStart?.({ directory, runs: plan.runs, parallel: together });
  const runs = await performAll({ work, loaded, directory, host }, plan.runs, together, options);

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

/** The runs that the options ask for, each with its recipe. @throws RecipeError */
function comparisonOf(loaded: LoadedRecipe, options: AblateOptions): Comparison {
  const { set = [], seeds = 5, firstSeed = 1, warmStartSeed } = options;
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
 * Trains the runs, `together` at once. Runs with one warm start wait until the first of them has put it into the cache.
 */
async function performAll(
  shared: Shared,
  runs: readonly ResolvedRun[],
  together: number,
  options: AblateOptions,
): Promise<RunSummary[]> {
  const summaries = new Map<string, RunSummary>();
  const jobs = runs.map((run) => ({
    lane: `warm start ${run.recipe.warmStart === undefined ? run.name : run.recipe.warmStart.seed}`,
    run: async (openLane: () => void) => {
      const summary = await perform(shared, run, options, openLane);
      summaries.set(run.name, summary);
      options.onEnd?.(summary);
    },
  }));
  await runQueue(jobs, together);
  return runs.flatMap(({ name }) => summaries.get(name) ?? []);
}

interface Shared {
  readonly work: AblateWork;
  readonly loaded: LoadedRecipe;
  readonly directory: string;
  readonly host: Host;
}

/**
 * Trains one run from wherever it stands to its end. A run that fails has a summary too; only an interruption is an
 * error.
 */
async function perform(
  { work, loaded, directory, host }: Shared,
  planned: ResolvedRun,
  { onBegin, onEvent, onProgress, track = [] }: AblateOptions,
  openLane: () => void,
): Promise<RunSummary> {
  const { signal } = host;
  signal.throwIfAborted();
  const path = join(directory, planned.name);
  const write = (event: RunEvent) => {
    if (!BEFORE_REINFORCEMENT.includes(event.type)) openLane(); // the pair's warm start is in the cache now
    onEvent?.(planned, event);
  };
  const outlets = new Outlets({ sinks: [{ write }], track }, host.notify);
  const begun = await nodeFiles.exists(join(path, 'recipe.json'));
  const run = begun
    ? await RunDirectory.open(path, outlets)
    : await RunDirectory.create(path, runRecord({ loaded, ...planned }), outlets);
  const before = await run.events();
  if (before.some((event) => event.type === 'run.finished' && event.reason === 'completed'))
    return summaryOf(planned, before);
  let failure: string | undefined;
  await run.lock();
  try {
    const checkpoint = await run.latestCheckpoint();
    if (begun) await run.rewind(checkpoint);
    await outlets.open({ ...planned.recipe, sinks: [] }, run);
    onBegin?.(planned, begun ? await run.events() : before);
    const observer = onProgress && progressObserver((progress) => onProgress(planned, progress));
    await work.executeRun(planned.recipe, run, outlets.observing({ ...host, observer }), { checkpoint });
  } catch (error) {
    if (signal.aborted) throw error;
    failure = messageOf(error);
  } finally {
    await outlets.close();
    await run.close();
  }
  signal.throwIfAborted();
  return summaryOf(planned, await run.events(), failure);
}

/** Requires that a directory holds no run or the same one. @throws RunError when it holds another */
async function requireSameRun(path: string, { codeHash }: LoadedRecipe, recipe: Recipe): Promise<void> {
  if (!(await nodeFiles.exists(join(path, 'recipe.json')))) return;
  const { record } = await RunDirectory.open(path);
  if (record.recipe.codeHash !== codeHash || contentHash(record.resolved) !== contentHash(recipeJson(recipe)))
    throw new RunError(`${path} was made with other settings; choose another directory with --run`);
}

function parallelFor(recipe: Recipe | undefined, threads: number): number {
  const models = Object.values(recipe?.policies ?? {}).map(({ model }) => model.type);
  return models.every((type) => type === 'tiny-decoder' || type === 'choice-table')
    ? Math.min(threads, MOST_PARALLEL)
    : 1;
}
