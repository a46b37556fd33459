/** What estimators want to know of turns beyond their episodes. */
import { agentReward, type Episode, type EpisodeGroup, turnReward } from '../../core/episode.js';
import { mean } from '../../core/statistics.js';
import type { TurnExtras } from './advantages.js';

/**
 * The baseline of each turn whose task was also played greedily: the mean reward of the same agent's turns in the greedy episode, or
 * what the agent would have earned there where it was not asked.
 */
export function baselines(groups: readonly EpisodeGroup[], greedy: readonly Episode[]): TurnExtras {
  const ofTask = new Map(greedy.map((episode) => [episode.task.id, episode]));
  return new Map(
    groups.flatMap(({ task, episodes }) => {
      const episode = ofTask.get(task.id);
      if (episode === undefined) return [];
      return episodes.flatMap(({ turns }) =>
        turns.map((turn) => [turn, { baseline: earned(episode, turn.agent) }] as const),
      );
    }),
  );
}

function earned(episode: Episode, agent: string): number {
  const own = episode.turns.filter((turn) => turn.agent === agent);
  return own.length === 0 ? agentReward(episode, agent) : mean(own.map((turn) => turnReward(episode, turn)));
}
