import { type EpisodeGroup, inCanonicalOrder } from '../../../base/nouns.js';
import { chainsOf, type TurnChain } from './chains.js';

/**
 * A policy's turns of a step as chains, in the order of tasks and samples. Within an episode the chains have the
 * canonical order of their first turns.
 */
export function learntChains(policy: string, groups: readonly EpisodeGroup[]): TurnChain[] {
  return groups
    .flatMap(({ episodes }) => episodes)
    .flatMap(({ turns }) => chainsOf(inCanonicalOrder(turns).filter((turn) => turn.policy === policy)));
}
