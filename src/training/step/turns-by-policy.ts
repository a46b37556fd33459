import type { EpisodeGroup, Turn } from '../../core/episode.js';
import type { Recipe } from '../../recipe/recipe.js';

/**
 * The turns of a step that each policy learns from, in the order of tasks, samples and calls; every policy has an
 * entry.
 */
export type TurnsByPolicy = ReadonlyMap<string, readonly Turn[]>;

export function turnsByPolicy({ policies }: Recipe, groups: readonly EpisodeGroup[]): TurnsByPolicy {
  const byPolicy = new Map<string, Turn[]>(Object.keys(policies).map((policy) => [policy, []]));
  for (const { episodes } of groups)
    for (const { turns } of episodes) for (const turn of turns) byPolicy.get(turn.policy)?.push(turn);
  return byPolicy;
}
