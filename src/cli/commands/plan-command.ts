import { RecipeError } from '@drmas/engine/errors';
import type { RunListener } from '@drmas/engine/host';
import { nodeHost } from '@drmas/engine/platform';
import { RunDirectory } from '../../method/store.js';
import { requestStudy, wholeCheckpoint } from '../../runs/index.js';
import type { ForecastRequest } from '../../runs/studies.js';
import { type CommandContext, interruptedForGood, jsonText } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import {
  device,
  integer,
  model,
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

const TASKS = 32;

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
  play: toggle('play tasks with the models, without training: will reinforcement help, and how long does it take?'),
  ...playFlags,
  ...recipeFlags,
  json: toggle('print the plan as JSON'),
};

type PlanFlags = Partial<ValuesOfFlags<typeof flags>>;

export const plan = defineCommand({
  name: 'plan',
  description: 'forecast tokens, memory and time of a run, and check whether it can learn',
  details:
    "counts the run's episodes, tokens and memory without a model. With `--play` the models play 32 tasks without training: success, groups with a learning signal, invalid outputs, each estimator's inflation, three episodes in full, the time of the run, and a warning if reinforcement will not help. The exit code is 1 if the run does not fit the memory of the card that it would use",
  arguments: [recipeArgument],
  flags,
  examples: [
    'drmas plan math',
    'drmas plan my-team.ts --play --tasks 64 --set training.groupSize=16',
    'drmas plan math --play --from runs/math-20260131-094501',
  ],
  run: (context, [source], typed) => showPlan(context, source, typed),
});

/** Prints the plan of a recipe. Returns the exit code. */
async function showPlan(
  context: CommandContext,
  source: string,
  { set: overrides = [], ...typed }: PlanFlags,
): Promise<number> {
  const { signal, stdout, stderr, environment } = context;
  const recipe = await requestStudy(source, withModel(withDevice({ ...typed, set: overrides })));
  const play = await playOf(typed);
  const { width } = screenOf(stdout, environment);
  const status = new StatusLines(screenOf(stderr, environment));
  const isCounting = play !== undefined && typed.json !== true;
  const listener = isCounting ? countingListener(status, play.tasks * recipe.training.groupSize) : undefined;
  try {
    const notify = (message: string) => status.say(...wrap(message, width));
    const host = nodeHost({ threads: typed.threads, signal, notify, listener });
    const onWarmup = warmupLines(status, width);
    const forecast = await context.forecastRun(recipe, host, { play, onWarmup }).finally(() => status.say());
    const { rehearsal: _, ...counted } = forecast;
    const lines = typed.json === true ? [jsonText({ type: 'plan', ...counted })] : planLines(forecast, width);
    for (const line of lines) stdout.write(`${line}\n`);
    return counted.fits === false ? 1 : 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    return interruptedForGood(context);
  }
}

/** The tasks and policies to play, if any. @throws RecipeError for a flag of --play without it */
async function playOf({ play, tasks, from }: PlanFlags): Promise<ForecastRequest['play']> {
  if (play !== true && (tasks !== undefined || from !== undefined))
    throw new RecipeError('--tasks and --from need --play');
  if (play !== true) return undefined;
  const checkpoint =
    from === undefined ? undefined : await wholeCheckpoint(await RunDirectory.open(from), undefined, 'probe');
  return { tasks: tasks ?? TASKS, checkpoint };
}

/** Counts finished episodes on a status line. There may be more than were asked for. */
function countingListener(status: StatusLines, wanted: number): RunListener {
  let played = 0;
  return {
    episode: ({ round: { phase } }) => ({
      ended() {
        if (phase !== 'training') return;
        played++;
        status.passing(() => `played ${played} of ${Math.max(played, wanted)} episodes`);
      },
    }),
  };
}
