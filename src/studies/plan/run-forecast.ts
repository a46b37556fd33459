/** A run before it is paid for: its tokens, memory, hours and price, here and on machines that files describe. */
import type { Host } from '../../core/host.js';
import type { Recipe } from '../../recipe/recipe.js';
import { prepareTasks } from '../../run/open-run.js';
import { planRun } from './dry-run.js';
import { type Forecast, forecast, forecastAsItIs, type ScheduleForecast } from './forecast.js';
import type { Machine } from './machine.js';
import { type Measured, type MeasureOptions, measureMachine } from './measure-machine.js';
import { agentUse, type TokenBudget, tokenBudget } from './token-budget.js';

export interface ForecastOptions extends MeasureOptions {
  /** Machines besides this one. */
  readonly machines: readonly Machine[];
  /** Numbers of episodes at once. */
  readonly atOnce: readonly number[];
}

export interface RunForecast {
  readonly recipe: string;
  readonly episodes: TokenBudget['episodes'];
  readonly tokens: TokenBudget;
  readonly memory: {
    /** The most bytes that this process held. */
    readonly measured: number;
    /** Bytes with answers as long as they may be; absent where a server computes or a size is not known. */
    readonly planned?: number;
  };
  readonly probe: Pick<Measured, 'plays' | 'warmStartSeconds'> & {
    readonly seconds: number;
    readonly episodes: number;
  };
  /** The recipe as it is, on this machine. */
  readonly asItIs: ScheduleForecast;
  readonly machines: readonly {
    readonly name: string;
    readonly machine: Machine;
    /** Whether a run's memory fits; absent where that is not known. */
    readonly fits?: boolean;
    readonly forecasts: readonly Forecast[];
  }[];
  readonly notes: readonly string[];
}

/**
 * Forecasts a recipe's run. Nothing is written but the warm start's cache.
 * @throws what opening a run throws; the signal's reason when interrupted
 */
export async function forecastRun(recipe: Recipe, host: Host, options: ForecastOptions): Promise<RunForecast> {
  const tasks = await prepareTasks(recipe);
  const { memory: planned, memoryElsewhere, notes } = await planRun(recipe, tasks);
  const began = host.clock.seconds();
  const measured = await measureMachine(recipe, tasks, host, options);
  const seconds = host.clock.seconds() - began - measured.warmStartSeconds;
  const tokens = tokenBudget(recipe, agentUse(recipe, measured.played));
  const needed = Math.max(measured.memoryBytes, planned?.total ?? 0);
  const here = { ...measured.machine, name: `${measured.machine.name}` };
  return {
    recipe: recipe.name,
    episodes: tokens.episodes,
    tokens,
    memory: { measured: measured.memoryBytes, ...(planned === undefined ? {} : { planned: planned.total }) },
    probe: {
      plays: measured.plays,
      warmStartSeconds: measured.warmStartSeconds,
      seconds,
      episodes: measured.played.length,
    },
    asItIs: forecastAsItIs(recipe, measured, here),
    machines: [here, ...options.machines].map((machine) => ({
      name: machine.name,
      machine,
      ...(machine.memoryBytes === undefined ? {} : { fits: needed <= machine.memoryBytes }),
      forecasts: options.atOnce.map((atOnce) => forecast(recipe, measured, machine, atOnce)),
    })),
    notes: [
      ...(memoryElsewhere === undefined ? [] : [memoryElsewhere]),
      ...notes.filter((note) => !note.startsWith('calls and prompts')),
      ...options.machines.flatMap(({ name, recipe: other }) =>
        other === undefined || other === recipe.name
          ? []
          : [`${name} was measured with '${other}': with other models it has another speed`],
      ),
      'lengths of answers are those of the policies that reinforcement begins with; they may grow',
    ],
  };
}
