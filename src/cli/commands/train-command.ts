import { isAbsolute, join } from 'node:path';
import { ArgumentError, given, RunError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { nodeFiles } from '@drmas/engine/platform';
import { RECIPE, RunDirectory } from '../../method/store.js';
import { fetchRun, resumeIn, trainIn } from '../../runs/index.js';
import { type CommandContext, jsonSink } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import {
  allowEndpoint,
  device,
  integer,
  json,
  model,
  set,
  text,
  threads,
  toggle,
  track,
  withDevice,
  withModel,
} from '../flags.js';
import { type Reporting, reportRun, typedRequest } from '../report-run.js';
import { onRay, withRay } from '../with-ray.js';

/** Trains a team. It checks the recipe, the tasks and the run directory before it creates anything. */
export const train = defineCommand({
  name: 'train',
  description: 'train a team',
  details:
    'trains a recipe that ships, by name, or a recipe in a TypeScript file. `--set key=value` changes a setting. `--watch` also serves the dashboard of the run. `drmas plan` forecasts tokens and memory, and with `--play` the time',
  arguments: [argument('recipe', 'name of a recipe that ships, or a TypeScript file')],
  flags: {
    set,
    run: text('directory', 'directory of the run (default: runs/<recipe>-<time>)'),
    seed: integer(0, 'seed of sampling and reinforcement'),
    resume: toggle('resume the run of --run if it exists; with --json, print its events again'),
    allowEndpoint,
    acceptChanges: toggle('with --resume: resume although the recipe, its code or the kernels have changed'),
    ...onRay,
    store: text(
      'place',
      'copy the run to this folder or s3://bucket/prefix at each checkpoint; with --ray, the place of the runs',
    ),
    model,
    device,
    threads,
    watch: toggle('serve a dashboard of the run and print its address'),
    track,
    json,
  },
  examples: [
    'drmas train math',
    'drmas train math --seed 2 --set advantage.type=grpo',
    'drmas train gsm8k --set tasks.train.file=train.jsonl',
    'drmas train my-agents.ts --model path/to/model.gguf',
    'drmas train examples/own-team.ts --run runs/first',
    'drmas train examples/own-team.ts --run runs/first --resume',
  ],
  async run(context, [source], { json: asJson = false, watch = false, resume = false, ...flags }) {
    if (flags.acceptChanges === true && !resume) throw new ArgumentError('--accept-changes needs --resume');
    const { ray, store, rayCommand, gpusPerRun, ...options } = withModel(withDevice(flags));
    // Jobs of a cluster store their runs themselves.
    const [here, there] = ray === undefined ? [store, undefined] : [undefined, store];
    const resumes = resume && options.run !== undefined && (await isRun(options.run, here));
    const cluster = { ray, store: there, rayCommand, gpusPerRun, cpus: options.threads };
    const kept = here === undefined ? options : { ...options, store: here };
    return withRay(context, cluster, (working) =>
      (resumes ? resumeRun : begin)(working, source, { ...kept, watch }, asJson),
    );
  },
});

function begin(
  context: CommandContext,
  source: string,
  { watch, acceptChanges: _resumesOnly, ...options }: TypedRun,
  asJson: boolean,
): Promise<number> {
  const request = () => typedRequest(source, options.set);
  const perform = (reporting: Reporting) => trainIn(context.place, source, { ...options, ...reporting });
  return reportRun(context, asJson, request, watch ? watched(context, perform) : perform, options);
}

interface TypedRun {
  readonly set: readonly string[];
  readonly run?: string;
  readonly seed?: number;
  readonly threads?: number;
  readonly track: readonly string[];
  readonly store?: string;
  readonly acceptChanges?: boolean;
  readonly watch: boolean;
}

/** Whether a path has a run. If only a store has a copy of it, the copy is fetched. */
const isRun = async (path: string, store: string | undefined): Promise<boolean> =>
  (await nodeFiles.exists(join(path, RECIPE))) || (store !== undefined && fetchRun(store, path));

/**
 * Requires that a command which resumes a run names no other recipe that ships and no setting that the run does not
 * have: the run goes on with its own, so the command would promise what does not happen.
 * @throws RunError
 */
function requireSameRun({ path, record }: RunDirectory, source: string, { set, seed }: TypedRun): void {
  const { source: recorded, overrides } = record.recipe;
  const ships = (name: string) => !isAbsolute(name) && !/[./\\\s]/.test(name);
  if (ships(recorded) && source !== recorded) throw new RunError(`${path} is a run of ${recorded}, not of ${source}`);
  const typed = [...set, ...(seed === undefined ? [] : [`seed=${seed}`])];
  const others = typed.filter((setting) => !overrides.includes(setting));
  if (others.length > 0)
    throw new RunError(
      `${path} was started without ${others.join(', ')}, and a resumed run keeps its settings; start another run with another --run, or leave the setting out`,
    );
}

/** Resumes the run at the path of --run. With --json it prints the run's earlier events first. */
async function resumeRun(there: CommandContext, source: string, options: TypedRun, asJson: boolean): Promise<number> {
  const { run: path = '', threads, track, store, acceptChanges, watch } = options;
  const print = jsonSink(there);
  const directory = await RunDirectory.open(path);
  requireSameRun(directory, source, options);
  const before = await directory.events();
  if (before.some((event) => event.type === 'run.finished' && event.reason === 'completed')) {
    if (asJson) for (const event of before) print.write(event);
    else there.stdout.write(`${path} is complete\n`);
    return 0;
  }
  let isReplayed = !asJson;
  const perform = ({ sinks = [], onStart, ...reporting }: Reporting) =>
    resumeIn(there.place, path, source, {
      ...given({ threads, acceptChanges }),
      track,
      store,
      ...reporting,
      // onStart prints the events of the log, which include those emitted before it.
      sinks: asJson ? [{ write: (event: RunEvent) => void (isReplayed && print.write(event)) }] : sinks,
      onStart(start) {
        if (!isReplayed) for (const event of start.events) print.write(event);
        isReplayed = true;
        onStart?.(start);
      },
    });
  const request = () => typedRequest(source, options.set);
  return reportRun(there, asJson, request, watch ? watched(there, perform) : perform, options);
}

/**
 * Trains, and serves a dashboard until the training ends. The dashboard opens before the recipe is read, because
 * reading it, its tasks and its models may take minutes.
 */
const watched =
  <Result>({ openDashboard }: CommandContext, perform: (reporting: Reporting) => Promise<Result>) =>
  async (reporting: Reporting): Promise<Result> => {
    const dashboard = openDashboard((message) => reporting.onNotice?.(message));
    const onStart: Reporting['onStart'] = (start) => {
      reporting.onStart?.(start);
      dashboard.show(start.run);
    };
    try {
      return await perform({ ...reporting, onStart });
    } finally {
      dashboard.close();
    }
  };
