import { type EpisodeGroup, inCanonicalOrder } from '../../core/episode.js';
import type { Recipe } from '../../recipe/recipe.js';
import { type Chain, chainsOf } from './chains.js';

/**
 * The turns of a step that each policy learns from, as chains, in the order of tasks and samples and, within an
 * episode, in the canonical one of their first turns; every policy has an entry.
 */
export type ChainsByPolicy = ReadonlyMap<string, readonly Chain[]>;

export function chainsByPolicy({ policies }: Recipe, groups: readonly EpisodeGroup[]): ChainsByPolicy {
  const byPolicy = new Map<string, Chain[]>(Object.keys(policies).map((policy) => [policy, []]));
  for (const { turns } of groups.flatMap(({ episodes }) => episodes)) {
    const learnt = inCanonicalOrder(turns).filter(({ policy }) => byPolicy.has(policy));
    for (const chain of chainsOf(learnt)) byPolicy.get((chain[0] as Chain[number]).policy)?.push(chain);
  }
  return byPolicy;
}
