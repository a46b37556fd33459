/**
 * What a turn counts by how long what it set off took. Where samples are taken for a fixed time, quick actions come
 * more often than slow ones, and a gradient that sums over samples prefers them; weights in proportion to durations
 * undo that (Yang, He-Yueya, Liang: arXiv 2509.01684, duration-aware gradient updates).
 */
import type { Turn } from '../../core/episode.js';
import { mean } from '../../core/statistics.js';

/** How durations weigh. */
export interface DurationWeights {
  /** The largest weight. */
  readonly most: number;
}

/**
 * The weight of each turn: its duration over the mean of its agent's, at most `most`. Without a cap they have mean 1
 * for each agent, so that no agent learns faster or slower; where nothing took any time, and of turns without a
 * duration, it is 1.
 */
export function durationWeights(
  turns: readonly Pick<Turn, 'agent' | 'duration'>[],
  settings: DurationWeights | undefined,
): number[] {
  if (settings === undefined) return turns.map(() => 1);
  const durations = new Map<string, number[]>();
  for (const { agent, duration } of turns)
    if (duration !== undefined) durations.set(agent, [...(durations.get(agent) ?? []), duration]);
  const means = new Map([...durations].map(([agent, all]) => [agent, mean(all)]));
  return turns.map(({ agent, duration }) => {
    const usual = means.get(agent) ?? 0;
    return duration === undefined || usual === 0 ? 1 : Math.min(settings.most, duration / usual);
  });
}
