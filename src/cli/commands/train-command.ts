import { join } from 'node:path';
import type { RunEvent } from '../../core/events.js';
import { nodeFiles } from '../../platform/node-files.js';
import { resumeWith, trainWith } from '../../run/api.js';
import { takeFrom } from '../../run/kept-elsewhere.js';
import { requestRecipe } from '../../run/request.js';
import { RunDirectory } from '../../store/run-directory.js';
import { RECIPE } from '../../store/run-files.js';
import { type CommandContext, jsonSink, jsonText } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { device, integer, json, set, text, threads, toggle, track, withDevice } from '../flags.js';
import { type Reporting, reportRun, typedRequest } from '../report-run.js';
import { planLines } from '../reporter/planning/plan-printer.js';
import { screenOf } from '../reporter/screen.js';
import { onRay, withRay } from '../with-ray.js';

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
    goOn: toggle('go on with the run of --run where there is one; with --json its events are printed again'),
    ...onRay,
    store: text(
      'place',
      'a folder or s3://bucket/prefix that gets a copy of the run at each checkpoint; with --ray, where runs lie',
    ),
    device,
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
  async run(context, [source], { json: asJson = false, dryRun = false, watch = false, goOn = false, ...flags }) {
    const { ray, store, rayCommand, ...options } = withDevice(flags);
    if (dryRun) return showPlan(context, source, options, asJson);
    // On a cluster the jobs keep their runs there; else this process does.
    const [here, there] = ray === undefined ? [store, undefined] : [undefined, store];
    const goesOn = goOn && options.run !== undefined && (await isRun(options.run, here));
    const cluster = { ray, store: there, rayCommand, cpus: options.threads };
    const kept = here === undefined ? options : { ...options, store: here };
    return withRay(context, cluster, (working) =>
      goesOn ? goOnWith(working, source, kept, asJson) : begin(working, source, kept, asJson, watch),
    );
  },
});

function begin(
  context: CommandContext,
  source: string,
  options: Begun,
  asJson: boolean,
  watch: boolean,
): Promise<number> {
  const request = () => typedRequest(source, options.set);
  const perform = (reporting: Reporting) => trainWith(context.work, source, { ...options, ...reporting });
  const start = (reporting: Reporting) => (watch ? watched(context, reporting, perform) : perform(reporting));
  return reportRun(context, asJson, request, start, options);
}

interface Begun {
  readonly set: readonly string[];
  readonly run?: string;
  readonly seed?: number;
  readonly threads?: number;
  readonly track: readonly string[];
  readonly store?: string;
}

/** Whether a run lies at a path, from now on where a place has a copy of it. */
const isRun = async (path: string, store: string | undefined): Promise<boolean> =>
  (await nodeFiles.exists(join(path, RECIPE))) || (store !== undefined && takeFrom(store, path));

/** Goes on with a run that lies where a new one was to lie, and tells the events that it has already. */
async function goOnWith(there: CommandContext, source: string, options: Begun, asJson: boolean): Promise<number> {
  const { run: path = '', threads, track, store } = options;
  const print = jsonSink(there);
  const before = await (await RunDirectory.open(path)).events();
  if (before.some((event) => event.type === 'run.finished' && event.reason === 'completed')) {
    if (asJson) for (const event of before) print.write(event);
    return 0;
  }
  let isReplayed = !asJson;
  const perform = ({ sinks = [], onStart, ...reporting }: Reporting) =>
    resumeWith(there.work, path, source, {
      ...{ ...(threads === undefined ? {} : { threads }), track, store, ...reporting },
      // What is announced while the log is taken back is among the events that are printed then.
      sinks: asJson ? [{ write: (event: RunEvent) => void (isReplayed && print.write(event)) }] : sinks,
      onStart(start) {
        if (!isReplayed) for (const event of start.events) print.write(event);
        isReplayed = true;
        onStart?.(start);
      },
    });
  return reportRun(there, asJson, () => typedRequest(source, options.set), perform, options);
}

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
