/** Chooses the groups of episodes that an update learns from. */
import { ArgumentError, requireKnown } from '@drmas/engine/errors';
import { differ, standardDeviation } from '@drmas/engine/math';

/**
 * DAPO's dynamic sampling (Yu et al. 2025, eq. 11) keeps groups whose episodes differ. RAGEN's filter (Wang et al.
 * 2025, StarPO-S) keeps the fraction `keep` of the groups, those with the largest differences.
 */
export type GroupFilter = { readonly type: 'equal-outcomes' } | { readonly type: 'variance'; readonly keep: number };

/**
 * Positions of the groups that the filter keeps, in their order.
 * @param groups The scores of each group's episodes. Groups may differ in size
 */
export function keptGroups(groups: readonly (readonly number[])[], filter: GroupFilter): number[] {
  const positions = groups.map((_, position) => position);
  if (filter.type === 'equal-outcomes') return positions.filter((position) => areDifferent(groups[position] ?? []));
  const count = Math.max(1, Math.floor(filter.keep * groups.length + 1e-9));
  const spreads = groups.map((scores) => standardDeviation(scores));
  // The sort is stable: among equal spreads the earlier group stays.
  const widest = positions.sort((a, b) => (spreads[b] as number) - (spreads[a] as number)).slice(0, count);
  return widest.sort((a, b) => a - b);
}

const areDifferent = (scores: readonly number[]): boolean => scores.some((score) => differ(score, scores[0] as number));

/**
 * DAPO's filter on a flat list. Returns the positions of the episodes whose group has more than one outcome. A group
 * with equal rewards teaches nothing about its task.
 * @param rewards One an episode, groups side by side
 * @param options.lastTry Keep everything, because there is no time to play other tasks
 * @throws ArgumentError if the episodes do not fill whole groups, a reward is not finite, or an option is unknown
 *
 * @example
 * ```ts
 * import { filterGroups } from 'drmas';
 *
 * filterGroups([1, 0, 1, 1], { groupSize: 2 }); // [0, 1]: the second group's episodes earned the same
 * ```
 */
export function filterGroups(
  rewards: readonly number[],
  options: { readonly groupSize: number; readonly lastTry?: boolean },
): number[] {
  requireKnown<typeof options>(options, { groupSize: true, lastTry: true });
  const { groupSize, lastTry = false } = options;
  if (!Number.isInteger(groupSize) || groupSize < 1 || rewards.length % groupSize !== 0) {
    throw new ArgumentError(`${rewards.length} rewards are not whole groups of ${groupSize}`);
  }
  const odd = rewards.findIndex((reward) => !Number.isFinite(reward));
  if (odd >= 0) throw new ArgumentError(`rewards[${odd}] is ${rewards[odd]}, expected a finite number`);
  const groups = Array.from({ length: rewards.length / groupSize }, (_, g) =>
    rewards.slice(g * groupSize, (g + 1) * groupSize),
  );
  const kept = new Set(lastTry ? groups.keys() : keptGroups(groups, { type: 'equal-outcomes' }));
  return [...rewards.keys()].filter((position) => kept.has(Math.floor(position / groupSize)));
}
