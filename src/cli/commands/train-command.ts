import { nodeHost } from '../../platform/node-host.js';
import type { Recipe } from '../../recipe/recipe.js';
import { requestRecipe, runRecord } from '../../run/request.js';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import { defaultRunPath, RunDirectory } from '../../store/run-directory.js';
import type { RunPlan } from '../../studies/plan/dry-run.js';
import type { Tasks } from '../../training/run-state.js';
import { type CommandContext, INTERRUPTED, jsonSink } from '../command-context.js';
import { planLines } from '../reporter/plan-printer.js';
import { screenOf } from '../reporter/screen.js';
import { TerminalReporter } from '../reporter/terminal-reporter.js';

export interface TrainFlags {
  readonly set: readonly string[];
  readonly run?: string;
  readonly seed?: number;
  readonly threads?: number;
  readonly json?: boolean;
  readonly dryRun?: boolean;
}

/** `drmas train <recipe>`. Nothing is created before recipe, tasks and run directory are known to be good. */
export async function trainCommand(context: CommandContext, source: string, flags: TrainFlags): Promise<number> {
  const request = await requestRecipe(source, flags);
  const { recipe } = request;
  const tasks = await context.work.prepareTasks(recipe);
  if (flags.dryRun === true) return showPlan(context, await context.work.planRun(recipe, tasks), flags.json === true);
  const path = flags.run ?? (await defaultRunPath(recipe.name));
  const reporting = report(context, recipe, { request: asked(source, flags.set), path, json: flags.json === true });
  const run = await RunDirectory.create(path, runRecord(request), { sinks: [reporting.sink] });
  return work(context, { recipe, tasks, run, reporting, threads: flags.threads, checkpoint: undefined });
}

function showPlan(context: CommandContext, plan: RunPlan, json: boolean): number {
  const { width } = screenOf(context.stdout, context.environment);
  const lines = json ? [JSON.stringify({ type: 'plan', ...plan })] : planLines(plan, width);
  for (const line of lines) context.stdout.write(`${line}\n`);
  return 0;
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
  readonly tasks: Tasks;
  readonly run: RunDirectory;
  readonly reporting: ReturnType<typeof report>;
  readonly checkpoint: Checkpoint | undefined;
  /** All cores when not given. */
  readonly threads: number | undefined;
}

/** Trains until the recipe is done or Ctrl-C comes, and says how it ended. */
export async function work(context: CommandContext, job: Job): Promise<number> {
  const { signal } = context;
  const { recipe, tasks, run, checkpoint, threads } = job;
  const { reporter, notify } = job.reporting;
  try {
    await context.work.executeRun(recipe, run, nodeHost({ threads, signal, notify }), { tasks, checkpoint });
  } catch (error) {
    if (!signal.aborted) throw error;
    reporter?.interrupted();
    return INTERRUPTED;
  }
  await reporter?.finish(run);
  return 0;
}
