import { RecipeError } from '@drmas/engine/errors';
import type { RunListener } from '@drmas/engine/host';
import { nodeHost } from '@drmas/engine/platform';
import { RunDirectory } from '../../method/store.js';
import { lastCheckpoint, requestStudy } from '../../runs/index.js';
import {
  type ForecastRequest,
  type RunForecast,
  readMachine,
  requireSavePath,
  writeMachine,
} from '../../runs/studies.js';
import { type CommandContext, interruptedForGood, jsonText } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import {
  device,
  formerly,
  integer,
  model,
  numbers,
  repeated,
  set,
  text,
  threads,
  toggle,
  type ValuesOfFlags,
  withDevice,
  withModel,
} from '../flags.js';
import { planLines } from '../reporter/planning/plan-printer.js';
import { warmupLines } from '../reporter/progress-printer.js';
import { StatusLines, screenOf } from '../reporter/screen.js';
import { wrap } from '../reporter/text-layout.js';

/** Defaults of --tasks, --seconds and --concurrency. */
const TASKS = 32;
const SECONDS = 60;
const CONCURRENCY = [1, 10, 100, 1000, 10_000];

const recipeArgument = argument('recipe', 'name of a recipe that ships, or a TypeScript file');

const playFlags = {
  tasks: integer(1, `with --play: tasks (default: ${TASKS})`),
  from: text('run', "with --play: use the policies of this run's last checkpoint instead of the warm start"),
};

const recipeFlags = {
  set,
  seed: integer(0, 'seed of tasks and sampling'),
  model,
  device,
  threads,
};

const flags = {
  play: toggle('play tasks with the models, without training: will reinforcement help?'),
  ...playFlags,
  measure: toggle('measure for a minute how fast this machine plays and learns, and simulate the run'),
  seconds: integer(1, `with --measure: seconds to play and learn (default: ${SECONDS})`),
  concurrency: formerly(
    'atOnce',
    numbers('n,n', [1, 100_000], `with --measure: numbers of concurrent episodes (default: ${CONCURRENCY})`),
  ),
  machine: repeated(
    'file',
    'with --measure: the speed and price of another machine, a file of --save; may be repeated',
  ),
  save: text('file', "with --measure: write this machine's speed to a file"),
  ...recipeFlags,
  json: toggle('print the plan as JSON'),
};

type PlanFlags = Partial<ValuesOfFlags<typeof flags>>;

/** Forecasts a run before it starts, and checks whether it can learn. */
export const plan = defineCommand({
  name: 'plan',
  description: 'forecast tokens, memory and time of a run, and check whether it can learn',
  details:
    "counts the run's episodes, tokens and memory without a model. With `--play` the models play 32 tasks without training: success, groups with a learning signal, invalid outputs, each estimator's inflation, three episodes in full, and a warning if reinforcement will not help. With `--measure` drmas plays and learns for a minute and simulates the run with 1 to 10,000 concurrent episodes, here and on the machines of `--machine FILE`",
  arguments: [recipeArgument],
  flags,
  examples: [
    'drmas plan math',
    'drmas plan my-team.ts --play --tasks 64 --set training.groupSize=16',
    'drmas plan math --play --from runs/math-20260131-094501',
    'drmas plan my-team.ts --measure --save here.json',
    'drmas plan my-team.ts --machine rented.json --concurrency 64,512',
  ],
  run: (context, [source], typed) => showPlan(context, source, typed),
});

/** The former name of `plan --play`. Its JSON has the report alone, as before. */
export const probe = defineCommand({
  name: 'probe',
  replacedBy: 'drmas plan --play',
  description: 'play tasks with the models, without training',
  details: 'the former name of `drmas plan --play`',
  arguments: [recipeArgument],
  flags: { ...playFlags, ...recipeFlags, json: toggle('print the findings as JSON') },
  examples: [],
  run: (context, [source], typed) =>
    showPlan(context, source, { ...typed, play: true }, ({ played }) => ({ type: 'probe', ...played })),
});

/** Prints the plan of a recipe for a person or, by `jsonOf`, for a program. Returns the exit code. */
export async function showPlan(
  context: CommandContext,
  source: string,
  { set: overrides = [], ...typed }: PlanFlags,
  jsonOf: (forecast: RunForecast) => object = ({ rehearsal: _, ...forecast }) => ({ type: 'plan', ...forecast }),
): Promise<number> {
  const { signal, stdout, stderr, environment } = context;
  const recipe = await requestStudy(source, withModel(withDevice({ ...typed, set: overrides })));
  const { play, measure } = await requestOf(typed);
  const { width } = screenOf(stdout, environment);
  const status = new StatusLines(screenOf(stderr, environment));
  const isCounting = (play ?? measure) !== undefined && typed.json !== true;
  const wanted = play === undefined ? undefined : play.tasks * recipe.training.groupSize;
  const listener = isCounting ? countingListener(status, wanted) : undefined;
  try {
    const notify = (message: string) => status.say(...wrap(message, width));
    const host = nodeHost({ threads: typed.threads, signal, notify, listener });
    const onWarmup = warmupLines(status, width);
    const forecast = await context.forecastRun(recipe, host, { play, measure, onWarmup }).finally(() => status.say());
    const [here] = forecast.measured?.machines ?? [];
    if (typed.save !== undefined && here !== undefined) await writeMachine(typed.save, here.machine);
    const lines = typed.json === true ? [jsonText(jsonOf(forecast))] : planLines(forecast, width);
    for (const line of lines) stdout.write(`${line}\n`);
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    return interruptedForGood(context);
  }
}

/**
 * The parts of a forecast that the flags ask for.
 * @throws RecipeError for a flag without its part, or a path of --save that no machine file may have
 */
async function requestOf({ play, tasks, from, measure, seconds, concurrency, machine = [], save }: PlanFlags) {
  if (play !== true && (tasks !== undefined || from !== undefined))
    throw new RecipeError('--tasks and --from need --play');
  if (save !== undefined) await requireSavePath(save);
  // These flags measured without --measure in the previous version.
  const measures =
    measure === true || machine.length > 0 || [seconds, concurrency, save].some((one) => one !== undefined);
  const request: Pick<ForecastRequest, 'play' | 'measure'> = {
    ...(play !== true
      ? {}
      : {
          play: {
            tasks: tasks ?? TASKS,
            checkpoint: from === undefined ? undefined : await lastCheckpoint(await RunDirectory.open(from), 'probe'),
          },
        }),
    ...(measures
      ? {
          measure: {
            seconds: seconds ?? SECONDS,
            machines: await Promise.all(machine.map(readMachine)),
            concurrency: concurrency ?? CONCURRENCY,
          },
        }
      : {}),
  };
  return request;
}

/**
 * Counts finished episodes on a status line. `--play` may play more episodes than it was asked for; `--measure` alone
 * plays as many as its seconds allow.
 */
function countingListener(status: StatusLines, wanted: number | undefined): RunListener {
  let played = 0;
  const line = () =>
    wanted === undefined
      ? `measuring: played ${played} episodes`
      : `played ${played} of ${Math.max(played, wanted)} episodes`;
  return {
    episode: ({ round: { phase } }) => ({
      ended() {
        if (phase !== 'training') return;
        played++;
        status.passing(line);
      },
    }),
  };
}
