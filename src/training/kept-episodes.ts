import type { Recipe } from '../recipe/recipe.js';
import type { RunLog } from './run-state.js';
import type { StepAdvantages } from './step/advantages.js';
import type { StepRollout } from './step/rollout-step.js';
import type { Updates } from './update/update-result.js';

/** Whether the recipe keeps the episodes of a step. */
export function keepsEpisodes({ training: { keepEpisodes } }: Recipe, step: number): boolean {
  return typeof keepEpisodes === 'number' ? step % keepEpisodes === 0 : keepEpisodes;
}

/**
 * Writes the episodes of a step, where the recipe keeps those of this step; those left out of the update have no
 * advantages.
 */
export async function keepStep(
  recipe: Recipe,
  log: RunLog,
  step: number,
  { all }: StepRollout,
  advantages?: StepAdvantages,
  updates: Updates = {},
): Promise<void> {
  if (!keepsEpisodes(recipe, step)) return;
  const episodes = all.flatMap((group) => group.episodes);
  const ofEpisode = episodes.map((episode) => advantages?.byEpisode.get(episode) ?? []);
  const tokens = new Map(Object.values(updates).flatMap((update) => [...(update.tokens ?? [])]));
  await log.writeStepEpisodes(step, episodes, ofEpisode, tokens);
}
