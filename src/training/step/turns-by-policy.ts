import { type EpisodeGroup, inCanonicalOrder, type Turn } from '../../core/episode.js';
import type { Recipe } from '../../recipe/recipe.js';

/**
 * The turns of a step that each policy learns from, in the order of tasks and samples and, within an episode, in the
 * canonical one; every policy has an entry.
 */
export type TurnsByPolicy = ReadonlyMap<string, readonly Turn[]>;

export function turnsByPolicy({ policies }: Recipe, groups: readonly EpisodeGroup[]): TurnsByPolicy {
  const byPolicy = new Map<string, Turn[]>(Object.keys(policies).map((policy) => [policy, []]));
  for (const { episodes } of groups)
    for (const { turns } of episodes) for (const turn of inCanonicalOrder(turns)) byPolicy.get(turn.policy)?.push(turn);
  return byPolicy;
}
