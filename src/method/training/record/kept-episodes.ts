import type { Recipe } from '../../recipe/recipe.js';
import type { Played } from '../play/played.js';
import type { RunLog } from '../run/run-state.js';
import type { Learnt } from '../update/update-policies.js';

export function keepsEpisodes({ keepEpisodes }: Pick<Recipe['training'], 'keepEpisodes'>, step: number): boolean {
  return typeof keepEpisodes === 'number' ? step % keepEpisodes === 0 : keepEpisodes;
}

/**
 * Writes the episodes of a step, if the recipe asks for them. Episodes that the update did not use have no advantages.
 */
export async function keepStep(
  training: Pick<Recipe['training'], 'keepEpisodes'>,
  log: Pick<RunLog, 'writeStepEpisodes'>,
  { step, all }: Pick<Played, 'step' | 'all'>,
  learnt?: Pick<Learnt, 'advantages' | 'updates'>,
): Promise<void> {
  if (!keepsEpisodes(training, step)) return;
  const episodes = all.flatMap((group) => group.episodes);
  const ofEpisode = episodes.map((episode) => learnt?.advantages.byEpisode.get(episode) ?? []);
  const tokens = new Map(Object.values(learnt?.updates ?? {}).flatMap((update) => [...(update.tokens ?? [])]));
  await log.writeStepEpisodes(step, episodes, ofEpisode, tokens);
}
