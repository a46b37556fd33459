import { availableParallelism } from 'node:os';
import { loadRecipe } from '../../recipe/load.js';
import type { Recipe } from '../../recipe/recipe.js';
import { resolveRecipe } from '../../recipe/resolve.js';
import type { Checkpoint } from '../../runs/checkpoints.js';
import { defaultRunPath, RunDirectory } from '../../runs/run-directory.js';
import { runRecord } from '../../training/api.js';
import { type CommandContext, INTERRUPTED, jsonSink } from '../context.js';
import { TerminalReporter } from '../reporter/reporter.js';
import { screenOf } from '../reporter/screen.js';

export interface TrainFlags {
  readonly set: readonly string[];
  readonly run?: string;
  readonly seed?: number;
  readonly threads?: number;
  readonly json?: boolean;
}

/** `drmas train <recipe>`. Nothing is created before recipe, tasks and run directory are known to be good. */
export async function trainCommand(context: CommandContext, source: string, flags: TrainFlags): Promise<number> {
  const loaded = await loadRecipe(source);
  const overrides = [...flags.set, ...(flags.seed === undefined ? [] : [`seed=${flags.seed}`])];
  const recipe = resolveRecipe(loaded.definition, { overrides, name: loaded.name });
  await context.work.prepareTasks(recipe);
  const path = flags.run ?? (await defaultRunPath(recipe.name));
  const reporting = report(context, recipe, { request: asked(source, flags.set), path, json: flags.json === true });
  const run = await RunDirectory.create(path, runRecord(loaded, overrides, recipe), { sinks: [reporting.sink] });
  return work(context, { recipe, run, reporting, threads: flags.threads, checkpoint: undefined });
}

/** The recipe as it was asked for, with what a similar request would repeat: not the seed, not the estimator. */
export function asked(source: string, overrides: readonly string[]): string {
  const repeated = overrides.filter((override) => !/^(seed|advantage\b)/.test(override));
  return [source, ...repeated.map((override) => `--set ${quoted(override)}`)].join(' ');
}

const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Who is told what happens: a person through a reporter, or a program through JSON lines. */
export function report(context: CommandContext, recipe: Recipe, to: { request: string; path: string; json: boolean }) {
  const { request, path, json } = to;
  if (json) {
    const notify = (message: string) => void context.stderr.write(`${message}\n`);
    return { sink: jsonSink(context), notify, reporter: undefined };
  }
  const reporter = new TerminalReporter(screenOf(context.stdout, context.environment), recipe, {
    request,
    runPath: path,
  });
  return { sink: reporter, notify: (message: string) => reporter.notify(message), reporter };
}

export interface Job {
  readonly recipe: Recipe;
  readonly run: RunDirectory;
  readonly reporting: ReturnType<typeof report>;
  readonly checkpoint: Checkpoint | undefined;
  /** All cores when not given. */
  readonly threads: number | undefined;
}

/** Trains until the recipe is done or Ctrl-C comes, and says how it ended. */
export async function work(context: CommandContext, job: Job): Promise<number> {
  const { signal } = context;
  const { recipe, run, checkpoint, threads = availableParallelism() } = job;
  const { reporter, notify: onNotice } = job.reporting;
  try {
    await context.work.executeRun(recipe, run, { checkpoint, threads, signal, onNotice });
  } catch (error) {
    if (!signal.aborted) throw error;
    reporter?.interrupted();
    return INTERRUPTED;
  }
  await reporter?.finish(run);
  return 0;
}
