import { mean } from '@drmas/engine/math';
import { parentsOf, statisticsOf } from '../groups.js';
import type { TurnBatch } from '../turn-batch.js';

export interface AgentRewards {
  readonly turns: number;
  readonly callsPerEpisode: number;
  readonly rewardMean: number;
  /** Standard deviation over all of its turns, dividing by n - 1. */
  readonly rewardStd: number;
  /**
   * The mean of the standard deviations of its rewards within tasks, over the tasks with two of its turns. Undefined if
   * there are none: a turn alone has no spread.
   */
  readonly groupSpread: number | undefined;
}

/**
 * The rewards of every agent of a batch.
 * @param episodes The number of played episodes, if some of them have no turn
 */
export function agentRewards(batch: TurnBatch, episodes = batch.episodes.count): Record<string, AgentRewards> {
  const { agents, taskAgents, rewards } = batch;
  const all = statisticsOf(agents, rewards);
  const { size, spread } = statisticsOf(taskAgents, rewards);
  const { of } = parentsOf(taskAgents, agents);
  const spreads: number[][] = Array.from({ length: agents.count }, () => []);
  of.forEach((k, group) => {
    if ((size[group] as number) > 1) spreads[k]?.push(spread[group] as number);
  });
  return batch.byAgent((k) => ({
    turns: all.size[k] as number,
    callsPerEpisode: (all.size[k] as number) / episodes,
    rewardMean: all.mean[k] as number,
    rewardStd: all.spread[k] as number,
    groupSpread: spreads[k]?.length === 0 ? undefined : mean(spreads[k] ?? []),
  }));
}
