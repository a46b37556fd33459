/** A run's tokens, memory and time before it starts: counted by a rehearsal, or played with the models. */
import type { Warmup } from '@drmas/engine/events';
import type { Host } from '@drmas/engine/host';
import type { Recipe } from '../../../method/recipe.js';
import { purposeOf } from '../../run/checks/backend-checks.js';
import { prepareTasks } from '../../run/open/prepare-tasks.js';
import { planRun, type RunPlan } from './dry-run.js';
import { type ProbeOptions, type ProbeReport, probeRecipe, type RunTime } from './probe/probe-recipe.js';

export interface ForecastRequest {
  /** Play tasks with the models, without training. */
  readonly play?: Pick<ProbeOptions, 'tasks' | 'checkpoint'> | undefined;
  readonly onWarmup?: (event: Warmup) => void;
}

export interface RunForecast extends RunPlan {
  /** The source of `agents` and `tokens`: a rehearsal without a model, or episodes that the models played. */
  readonly countedFrom: 'rehearsal' | 'episodes';
  /** The recipe as it is, on this machine; absent if nothing was played. */
  readonly time?: RunTime;
  /** The most bytes that this process used while it played. */
  readonly memoryHeld?: number;
  readonly played?: ProbeReport;
}

/**
 * Forecasts a recipe's run. Writes nothing but the warm start's cache. Played figures replace counted ones.
 * @throws the errors of opening a run; the signal's reason if interrupted
 */
export async function forecastRun(
  recipe: Recipe,
  host: Host,
  { play, ...options }: ForecastRequest = {},
): Promise<RunForecast> {
  const plan = await planRun(recipe, await prepareTasks(recipe, purposeOf(recipe), host));
  if (play === undefined) return { ...plan, countedFrom: 'rehearsal' };
  const played = await probeRecipe(recipe, host, { ...options, ...play });
  const { use, tokens, time, memory } = played.projection;
  return {
    ...plan,
    agents: use,
    countedFrom: 'episodes',
    tokens: { ...tokens, warmStart: plan.tokens.warmStart },
    notes: plan.notes.filter((note) => !plan.rehearsal.includes(note)),
    rehearsal: [],
    time,
    memoryHeld: memory,
    played,
  };
}
