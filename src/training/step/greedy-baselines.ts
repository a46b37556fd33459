import { agentReward, type Episode, inCanonicalOrder, type Turn, turnReward } from '../../core/episode.js';
import { mean } from '../../core/statistics.js';
import type { StepRollout } from './rollout-step.js';

/**
 * The baseline of each turn whose task was also played greedily: the mean reward of the same agent's turns in the
 * greedy episode, or what the agent would have earned there where it was not called.
 */
export function greedyBaselines({ kept, greedy }: Pick<StepRollout, 'kept' | 'greedy'>): ReadonlyMap<Turn, number> {
  const ofTask = new Map(greedy.map((episode) => [episode.task.id, episode]));
  return new Map(
    kept.flatMap(({ task, episodes }) => {
      const episode = ofTask.get(task.id);
      if (episode === undefined) return [];
      return episodes.flatMap(({ turns }) => turns.map((turn) => [turn, rewardIn(episode, turn.agent)] as const));
    }),
  );
}

function rewardIn(episode: Episode, agent: string): number {
  const turns = inCanonicalOrder(episode.turns).filter((turn) => turn.agent === agent);
  return turns.length === 0 ? agentReward(episode, agent) : mean(turns.map((turn) => turnReward(episode, turn)));
}
