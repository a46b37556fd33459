import { mean } from '@drmas/engine/math';
import { agentReward, type Episode, type EpisodeGroup, inCanonicalOrder, turnReward } from '@drmas/engine/nouns';
import { type FailureRule, isMeasured } from '../../../teams/rollout.js';
import type { Signal, SignalsByTurn } from '../run/signal.js';

/** A greedy episode of each task. It is the baseline of the task's other episodes (ReMax). */
export const greedyBaselines: Signal = {
  name: 'greedy',
  field: 'baseline',
  async play({ team, executor, training, host: { signal } }, { step, groups, versions }) {
    const played = await executor.playGroups({
      team,
      tasks: groups.map(({ task }) => task),
      groupSize: 1,
      phase: 'baseline',
      step,
      sampling: { temperature: 0 },
      versions,
      signal,
    });
    const episodes = played.flatMap((group) => group.episodes);
    return { episodes, byTurn: baselinesOf(groups, episodes, training.failedEpisodes) };
  },
  plan: ({ tasks }) => ({ episodes: tasks, whole: tasks }),
};

/**
 * The baseline of each turn of the tasks with a greedy episode: the mean reward of the same agent's turns in the greedy
 * episode. If the agent was not called there, it is the reward that the agent would have had. The greedy episode obeys
 * the rule about failed episodes. If it does not count, each turn's own reward is its baseline, and its advantage 0.
 */
export function baselinesOf(
  groups: readonly EpisodeGroup[],
  greedy: readonly Episode[],
  failedEpisodes: FailureRule,
): SignalsByTurn {
  const ofTask = new Map(greedy.map((episode) => [episode.task.id, episode]));
  return new Map(
    groups.flatMap(({ task, episodes }) => {
      const other = ofTask.get(task.id);
      if (other === undefined) return [];
      const counts = isMeasured(other, failedEpisodes);
      return episodes.flatMap((episode) =>
        episode.turns.map(
          (turn) => [turn, { baseline: counts ? rewardIn(other, turn.agent) : turnReward(episode, turn) }] as const,
        ),
      );
    }),
  );
}

function rewardIn(episode: Episode, agent: string): number {
  const turns = inCanonicalOrder(episode.turns).filter((turn) => turn.agent === agent);
  return turns.length === 0 ? agentReward(episode, agent) : mean(turns.map((turn) => turnReward(episode, turn)));
}
