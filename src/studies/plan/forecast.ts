/** What a run takes on a machine, with more or fewer episodes at once, in step and with a step played ahead. */
import type { Recipe } from '../../recipe/recipe.js';
import { playAlone } from './fit-sampling.js';
import type { Machine } from './machine.js';
import type { Measured } from './measure-machine.js';
import { type ScheduledEpisode, simulateSchedule } from './schedule.js';

/** The most episodes that are simulated of one schedule; longer runs go on as they went. */
const SIMULATED = 30_000;

/** A run by one schedule. */
export interface ScheduleForecast {
  readonly stepSeconds: number;
  /** All steps and evaluations, a warm start aside. */
  readonly seconds: number;
  /** The share of the steps' time in which the sampler worked. */
  readonly sampling: number;
  /** What the machine costs for that long; absent where it has no price. */
  readonly price?: number;
}

export interface Forecast {
  /** The most episodes at once. */
  readonly atOnce: number;
  /** Those of a step; more than the recipe's where more are to be played at once. */
  readonly stepEpisodes: number;
  readonly steps: number;
  readonly synchronous: ScheduleForecast;
  /** With `rollout.staleness` 1. */
  readonly ahead: ScheduleForecast;
}

type Played = Pick<Measured, 'pool' | 'epochs'>;

/** Forecasts the recipe's run with that many episodes at once. The number of all episodes stays. */
export function forecast(recipe: Recipe, measured: Played, machine: Machine, atOnce: number): Forecast {
  const { steps, tasksPerStep, groupSize } = recipe.training;
  const stepEpisodes = Math.max(tasksPerStep * groupSize, atOnce);
  const count = Math.max(1, Math.ceil((steps * tasksPerStep * groupSize) / stepEpisodes));
  const of = (staleness: number) =>
    scheduleForecast(recipe, measured, machine, { atOnce, stepEpisodes, steps: count, staleness });
  return { atOnce, stepEpisodes, steps: count, synchronous: of(0), ahead: of(1) };
}

/** The forecast of the recipe as it is, which a measured run can be held against. */
export function forecastAsItIs(recipe: Recipe, measured: Played, machine: Machine): ScheduleForecast {
  const { steps, tasksPerStep, groupSize, concurrency } = recipe.training;
  const stepEpisodes = tasksPerStep * groupSize;
  const staleness = recipe.rollout?.staleness ?? 0;
  return scheduleForecast(recipe, measured, machine, { atOnce: concurrency, stepEpisodes, steps, staleness });
}

interface Size {
  readonly atOnce: number;
  readonly stepEpisodes: number;
  readonly steps: number;
  readonly staleness: number;
}

function scheduleForecast(
  recipe: Recipe,
  { pool, epochs }: Played,
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
  const seconds = stepSeconds * steps + evaluationSeconds(recipe, pool, machine, atOnce, steps);
  const price = machine.pricePerHour === undefined ? {} : { price: (machine.pricePerHour * seconds) / 3600 };
  return { stepSeconds, seconds, sampling: run.sampling / Math.max(1e-12, run.seconds), ...price };
}

function evaluationSeconds(
  { evaluation, training }: Recipe,
  pool: readonly ScheduledEpisode[],
  machine: Machine,
  atOnce: number,
  steps: number,
): number {
  const { every, tasks, samples, samplesDuring = samples } = evaluation;
  const rounds = (count: number) =>
    Math.min(count, SIMULATED) === 0
      ? 0
      : (playAlone({ episodes: drawn(pool, 0, Math.min(count, SIMULATED)), atOnce }, machine.sampling).seconds *
          count) /
        Math.min(count, SIMULATED);
  const between = Math.max(0, Math.ceil((training.steps || 0) / every) - 1);
  return (steps > 0 ? 2 : 1) * rounds(tasks * samples) + between * rounds(tasks * samplesDuring);
}

/** Episodes of a pool, taken in turn. */
const drawn = (pool: readonly ScheduledEpisode[], first: number, count: number): ScheduledEpisode[] =>
  Array.from({ length: pool.length === 0 ? 0 : count }, (_, i) => pool[(first + i) % pool.length] as ScheduledEpisode);
