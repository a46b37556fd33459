import { parentsOf, statisticsOf } from '../groups.js';
import type { TurnBatch } from '../turn-batch.js';

export interface AgentRewards {
  readonly turns: number;
  readonly callsPerEpisode: number;
  readonly rewardMean: number;
  /** Standard deviation over all of its turns, dividing by n - 1. */
  readonly rewardStd: number;
  /** The mean over its tasks of the standard deviation of its rewards there. */
  readonly groupSpread: number;
}

/**
 * The rewards of every agent of a batch.
 * @param episodes The number of played episodes, if some of them have no turn
 */
export function agentRewards(batch: TurnBatch, episodes = batch.episodes.count): Record<string, AgentRewards> {
  const { agents, taskAgents, rewards } = batch;
  const all = statisticsOf(agents, rewards);
  const { spread } = statisticsOf(taskAgents, rewards);
  const { mean: groupSpread } = statisticsOf(parentsOf(taskAgents, agents), spread);
  return batch.byAgent((k) => ({
    turns: all.size[k] as number,
    callsPerEpisode: (all.size[k] as number) / episodes,
    rewardMean: all.mean[k] as number,
    rewardStd: all.spread[k] as number,
    groupSpread: groupSpread[k] as number,
  }));
}
