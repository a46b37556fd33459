import { ArgumentError } from '../core/errors.js';

/**
 * DAPO's filter (Yu et al. 2025): positions of the episodes whose group has more than one outcome; a group whose episodes all
 * earned the same teaches nothing about the task.
 * @param rewards One an episode, groups side by side
 * @param options.lastTry Keep everything: there is no time left to play other tasks
 * @throws ArgumentError when the episodes do not fill whole groups
 */
export function filterGroups(
  rewards: readonly number[],
  { groupSize, lastTry = false }: { readonly groupSize: number; readonly lastTry?: boolean },
): number[] {
  if (!Number.isInteger(groupSize) || groupSize < 1 || rewards.length % groupSize !== 0) {
    throw new ArgumentError(`${rewards.length} rewards are not whole groups of ${groupSize}`);
  }
  return rewards.flatMap((_, i) => {
    const start = i - (i % groupSize);
    const mixed = rewards.slice(start, start + groupSize).some((reward) => reward !== rewards[start]);
    return lastTry || mixed ? [i] : [];
  });
}
