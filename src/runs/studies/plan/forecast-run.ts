/** A run's tokens, memory, time and price before it starts: counted, played with the models, or measured. */
import { RecipeError } from '@drmas/engine/errors';
import type { Warmup } from '@drmas/engine/events';
import type { Host } from '@drmas/engine/host';
import type { Recipe } from '../../../method/recipe.js';
import { purposeOf } from '../../run/checks/backend-checks.js';
import { prepareTasks } from '../../run/open-run.js';
import { planRun, type RunPlan } from './dry-run.js';
import { type Forecast, forecast, forecastAsItIs, type ScheduleForecast } from './forecast.js';
import type { Machine } from './machine.js';
import { type Measured, measureMachine } from './measure-machine.js';
import { type ProbeOptions, type ProbeReport, probeRecipe } from './probe/probe-recipe.js';
import { type AgentUse, agentUse, tokenBudget } from './token-budget.js';

export interface MeasureRequest {
  /** The approximate number of seconds for playing and learning. */
  readonly seconds: number;
  /** Machines in addition to this one. */
  readonly machines: readonly Machine[];
  /** Numbers of concurrent episodes to forecast. */
  readonly concurrency: readonly number[];
}

export interface ForecastRequest {
  /** Play tasks with the models, without training. */
  readonly play?: Pick<ProbeOptions, 'tasks' | 'checkpoint'> | undefined;
  /** Measure how fast this machine plays and learns, and simulate the run. */
  readonly measure?: MeasureRequest | undefined;
  /** Receives the warm start's events. */
  readonly onWarmup?: (event: Warmup) => void;
}

/** This machine's measured speed, and the run on this and other machines. */
export interface MeasuredRun extends Pick<Measured, 'plays' | 'warmStartSeconds'> {
  readonly seconds: number;
  readonly episodes: number;
  readonly machines: readonly {
    readonly name: string;
    readonly machine: Machine;
    /** Whether the run's memory fits; absent if the machine's memory is not known. */
    readonly fits?: boolean;
    readonly forecasts: readonly Forecast[];
  }[];
}

export interface RunForecast extends RunPlan {
  /** The source of `agents` and `tokens`: a rehearsal without a model, or episodes that the models played. */
  readonly countedFrom: 'rehearsal' | 'episodes';
  /** The recipe as it is, on this machine; absent if nothing was played or measured. */
  readonly time?: ScheduleForecast;
  /** The most bytes that this process used while it played or measured. */
  readonly memoryHeld?: number;
  readonly played?: ProbeReport;
  readonly measured?: MeasuredRun;
}

/**
 * Forecasts a recipe's run. Writes nothing but the warm start's cache. Measured figures replace played ones, and played
 * figures replace counted ones.
 * @throws the errors of opening a run; the signal's reason if interrupted
 */
export async function forecastRun(
  requested: Recipe,
  host: Host,
  { play, measure, ...options }: ForecastRequest = {},
): Promise<RunForecast> {
  const purpose = purposeOf(requested);
  if (measure !== undefined && purpose === 'evaluation')
    throw new RecipeError('every agent is frozen: there is no training to measure', 'assign');
  const tasks = await prepareTasks(requested, purpose, host);
  const { evaluation } = requested;
  const heldOut = Math.min(evaluation.tasks, tasks.test.size);
  const recipe = { ...requested, evaluation: { ...evaluation, tasks: heldOut } };
  const plan = await planRun(recipe, tasks);
  const played = play && (await probeRecipe(recipe, host, { ...options, ...play }));
  const began = host.clock.seconds();
  const speed = measure && (await measureMachine(recipe, tasks, host, { ...options, seconds: measure.seconds }));
  if (measure !== undefined && speed !== undefined) {
    const seconds = host.clock.seconds() - began - speed.warmStartSeconds;
    return {
      ...recounted(plan, recipe, agentUse(recipe, speed.played)),
      ...(played === undefined ? {} : { played }),
      notes: [...notesWithoutRehearsal(plan), ...measuredNotes(recipe, measure)],
      time: forecastAsItIs(recipe, speed, speed.machine),
      memoryHeld: speed.memoryBytes,
      measured: measuredRun(recipe, plan, measure, speed, seconds),
    };
  }
  if (played === undefined) return { ...plan, countedFrom: 'rehearsal' };
  const { use, time, memory } = played.projection;
  return { ...recounted(plan, recipe, use), time, memoryHeld: memory, played };
}

/** The plan with the calls and tokens of played episodes instead of the rehearsal's. */
const recounted = (plan: RunPlan, recipe: Recipe, agents: Readonly<Record<string, AgentUse>>) => ({
  ...plan,
  agents,
  countedFrom: 'episodes' as const,
  tokens: { ...tokenBudget(recipe, agents), warmStart: plan.tokens.warmStart },
  notes: notesWithoutRehearsal(plan),
  rehearsal: [],
});

const notesWithoutRehearsal = ({ notes, rehearsal }: RunPlan) => notes.filter((note) => !rehearsal.includes(note));

const measuredNotes = (recipe: Recipe, { machines }: MeasureRequest): string[] => [
  ...machines.flatMap(({ name, recipe: other }) =>
    other === undefined || other === recipe.name
      ? []
      : [`${name} was measured with '${other}': its speed differs with other models`],
  ),
  'answers have the lengths of the policies before reinforcement; they may grow',
];

function measuredRun(
  recipe: Recipe,
  plan: RunPlan,
  { machines, concurrency }: MeasureRequest,
  speed: Measured,
  seconds: number,
): MeasuredRun {
  const needed = Math.max(speed.memoryBytes, plan.memory?.total ?? 0);
  return {
    plays: speed.plays,
    warmStartSeconds: speed.warmStartSeconds,
    seconds,
    episodes: speed.played.length,
    machines: [speed.machine, ...machines].map((machine) => ({
      name: machine.name,
      machine,
      ...(machine.memoryBytes === undefined ? {} : { fits: needed <= machine.memoryBytes }),
      forecasts: concurrency.map((atOnce) => forecast(recipe, speed, machine, atOnce)),
    })),
  };
}
