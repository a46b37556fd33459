import { trainWith } from '../../run/api.js';
import { requestRecipe } from '../../run/request.js';
import { type CommandContext, jsonText } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { integer, json, set, text, threads, toggle, track } from '../flags.js';
import { type Reporting, reportRun, typedRequest } from '../report-run.js';
import { planLines } from '../reporter/plan-printer.js';
import { screenOf } from '../reporter/screen.js';

/** Trains a team. It creates nothing before the recipe, the tasks and the run directory have been checked. */
export const train = defineCommand({
  name: 'train',
  description: 'train a team',
  details:
    'trains a recipe that ships, by name, or a TypeScript file. `--set key=value` changes any leaf, `--seed`, `--threads`, `--run DIR`, `--json`; `--watch` serves the dashboard of the run meanwhile; `--dry-run` says what it will take in tokens and memory, and starts nothing',
  arguments: [argument('recipe', 'name of a recipe that ships, or a TypeScript file')],
  flags: {
    set,
    run: text('directory', 'directory of the run (default: runs/<recipe>-<time>)'),
    seed: integer(0, 'seed of sampling and reinforcement'),
    dryRun: toggle('say what the run will take in tokens and memory, and start nothing'),
    threads,
    watch: toggle('show the run in a browser while it goes on: prints the address of a dashboard'),
    track,
    json,
  },
  examples: [
    'drmas train math',
    'drmas train math --dry-run',
    'drmas train math --seed 2 --set advantage.type=grpo',
    'drmas train gsm8k --set tasks.train.file=train.jsonl',
    'drmas train examples/own-team.ts --run runs/first',
  ],
  async run(context, [source], { json: asJson = false, dryRun = false, watch = false, ...options }) {
    if (dryRun) return showPlan(context, source, options, asJson);
    const request = () => typedRequest(source, options.set);
    const perform = (reporting: Reporting) => trainWith(context.work, source, { ...options, ...reporting });
    const start = (reporting: Reporting) => (watch ? watched(context, reporting, perform) : perform(reporting));
    return reportRun(context, asJson, request, start, options);
  },
});

/** Trains with a dashboard beside it, which begins with the run and ends with it. */
async function watched<Result>(
  { work }: CommandContext,
  reporting: Reporting,
  perform: (reporting: Reporting) => Promise<Result>,
): Promise<Result> {
  let close = () => {};
  const onStart: Reporting['onStart'] = (start) => {
    reporting.onStart?.(start);
    close = work.openDashboard(start.run, (message) => reporting.onNotice?.(message));
  };
  try {
    return await perform({ ...reporting, onStart });
  } finally {
    close();
  }
}

async function showPlan(
  context: CommandContext,
  source: string,
  options: Parameters<typeof requestRecipe>[1],
  asJson: boolean,
): Promise<number> {
  const { recipe } = await requestRecipe(source, options);
  const plan = await context.work.planRun(recipe, await context.work.prepareTasks(recipe));
  const { width } = screenOf(context.stdout, context.environment);
  const lines = asJson ? [jsonText({ type: 'plan', ...plan })] : planLines(plan, width);
  for (const line of lines) context.stdout.write(`${line}\n`);
  return 0;
}
