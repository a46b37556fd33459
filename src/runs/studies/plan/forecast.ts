/** The time and price of a run on a machine, by the number of concurrent episodes and of steps played ahead. */
import type { Recipe } from '../../../method/recipe.js';
import { playAlone } from './fit-sampling.js';
import type { Machine } from './machine.js';
import type { Measured } from './measure-machine.js';
import { type ScheduledEpisode, simulateSchedule } from './schedule.js';
import { evaluationEpisodes, evaluationRounds } from './token-budget.js';

/** The most episodes that one simulation plays; longer runs are extrapolated. */
const SIMULATED = 30_000;

/** A run under one schedule. */
export interface ScheduleForecast {
  readonly stepSeconds: number;
  /** All steps and evaluations, without the warm start. */
  readonly seconds: number;
  /** The share of the steps' time in which the sampler worked. */
  readonly sampling: number;
  /** The machine's price for that time; absent if it has none. */
  readonly price?: number;
}

export interface Forecast {
  /** The most concurrent episodes. */
  readonly atOnce: number;
  /** Episodes of a step: the recipe's number, or `atOnce` if that is more. */
  readonly stepEpisodes: number;
  readonly steps: number;
  readonly synchronous: ScheduleForecast;
  /** With `rollout.staleness` 1. */
  readonly ahead: ScheduleForecast;
}

type PlayedPool = Pick<Measured, 'pool' | 'epochs'>;

/** Forecasts the recipe's run with that many concurrent episodes. The total number of episodes stays. */
export function forecast(recipe: Recipe, measured: PlayedPool, machine: Machine, atOnce: number): Forecast {
  const { steps, tasksPerStep, groupSize } = recipe.training;
  const stepEpisodes = Math.max(tasksPerStep * groupSize, atOnce);
  const count = Math.max(1, Math.ceil((steps * tasksPerStep * groupSize) / stepEpisodes));
  const of = (staleness: number) =>
    scheduleForecast(recipe, measured, machine, { atOnce, stepEpisodes, steps: count, staleness });
  return { atOnce, stepEpisodes, steps: count, synchronous: of(0), ahead: of(1) };
}

/** The forecast of the recipe as it is. A measured run can be compared with it. */
export function forecastAsItIs(recipe: Recipe, measured: PlayedPool, machine: Machine): ScheduleForecast {
  const { steps, tasksPerStep, groupSize, concurrency } = recipe.training;
  const stepEpisodes = tasksPerStep * groupSize;
  const staleness = recipe.rollout?.staleness ?? 0;
  return scheduleForecast(recipe, measured, machine, { atOnce: concurrency, stepEpisodes, steps, staleness });
}

/**
 * The forecast of the recipe as it is from the seconds of one step's rollout and update. Rollouts and updates alternate
 * in it, also in a recipe whose rollouts are ahead of its updates.
 */
export function forecastFromSteps(
  recipe: Recipe,
  { rollout, update }: { readonly rollout: number; readonly update: number },
): ScheduleForecast {
  const { steps, tasksPerStep, groupSize } = recipe.training;
  const stepSeconds = rollout + update;
  const evaluation = (rollout / (tasksPerStep * groupSize)) * evaluationEpisodes(recipe);
  return {
    stepSeconds,
    seconds: stepSeconds * steps + evaluation,
    sampling: rollout / Math.max(1e-12, stepSeconds),
  };
}

interface Size {
  readonly atOnce: number;
  readonly stepEpisodes: number;
  readonly steps: number;
  readonly staleness: number;
}

function scheduleForecast(
  recipe: Recipe,
  { pool, epochs }: PlayedPool,
  machine: Machine,
  { atOnce, stepEpisodes, steps, staleness }: Size,
): ScheduleForecast {
  const simulated = Math.min(steps, Math.max(2 + 2 * staleness, Math.floor(SIMULATED / stepEpisodes)));
  const run = simulateSchedule(
    {
      steps: Array.from({ length: simulated }, (_, step) => drawn(pool, step * stepEpisodes, stepEpisodes)),
      atOnce,
      staleness,
      checkpointEvery: recipe.training.checkpointEvery,
      epochs,
    },
    machine,
  );
  const stepSeconds = run.seconds / simulated;
  const seconds = stepSeconds * steps + evaluationSeconds(recipe, pool, machine, atOnce);
  const price = machine.pricePerHour === undefined ? {} : { price: (machine.pricePerHour * seconds) / 3600 };
  return { stepSeconds, seconds, sampling: run.sampling / Math.max(1e-12, run.seconds), ...price };
}

function evaluationSeconds(
  recipe: Recipe,
  pool: readonly ScheduledEpisode[],
  machine: Machine,
  atOnce: number,
): number {
  const roundSeconds = (episodes: number) => {
    const simulated = Math.min(episodes, SIMULATED);
    if (simulated === 0) return 0;
    const play = playAlone({ episodes: drawn(pool, 0, simulated), atOnce }, machine.sampling);
    return (play.seconds * episodes) / simulated;
  };
  return evaluationRounds(recipe).reduce((sum, { rounds, episodes }) => sum + rounds * roundSeconds(episodes), 0);
}

/** Episodes of a pool, taken in turn. */
const drawn = (pool: readonly ScheduledEpisode[], first: number, count: number): ScheduledEpisode[] =>
  Array.from({ length: pool.length === 0 ? 0 : count }, (_, i) => pool[(first + i) % pool.length] as ScheduledEpisode);
