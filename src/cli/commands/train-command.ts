import { trainWith } from '../../run/api.js';
import { requestRecipe } from '../../run/request.js';
import type { CommandContext } from '../command-context.js';
import { reportRun, typedRequest } from '../report-run.js';
import { planLines } from '../reporter/plan-printer.js';
import { screenOf } from '../reporter/screen.js';

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
  const { json = false, dryRun = false, ...options } = flags;
  if (dryRun) return dryRunCommand(context, source, flags);
  const request = () => typedRequest(source, flags.set);
  return reportRun(context, json, request, (reporting) =>
    trainWith(context.work, source, { ...options, ...reporting }),
  );
}

async function dryRunCommand(context: CommandContext, source: string, flags: TrainFlags): Promise<number> {
  const { recipe } = await requestRecipe(source, flags);
  const plan = await context.work.planRun(recipe, await context.work.prepareTasks(recipe));
  const { width } = screenOf(context.stdout, context.environment);
  const lines = flags.json === true ? [JSON.stringify({ type: 'plan', ...plan })] : planLines(plan, width);
  for (const line of lines) context.stdout.write(`${line}\n`);
  return 0;
}
