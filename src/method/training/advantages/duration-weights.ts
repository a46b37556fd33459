/**
 * Weights of turns by the duration of their actions. If samples are taken for a fixed time, quick actions occur more
 * often than slow ones, so a gradient that sums over samples prefers quick actions. Weights in proportion to durations
 * correct this (Yang, He-Yueya, Liang: arXiv 2509.01684, duration-aware gradient updates).
 */

import { mean } from '../../../base/math.js';
import type { Turn } from '../../../base/nouns.js';

/** The settings of the weights. */
export interface DurationWeights {
  /** The largest weight. */
  readonly most: number;
}

/**
 * The weight of each turn: its duration divided by its agent's mean duration, at most `most`. Without a cap the weights
 * of each agent have mean 1, so that no agent learns faster or slower. The weight is 1 for a turn without a duration,
 * and for all turns if all durations are 0.
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
