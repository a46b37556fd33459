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
 * the rule about failed episodes. If it does not count, or does not say what the agent would have had, each turn's own
 * reward is its baseline, and its advantage 0.
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
          (turn) =>
            [
              turn,
              { baseline: (counts ? rewardIn(other, turn.agent, episode) : undefined) ?? turnReward(episode, turn) },
            ] as const,
        ),
      );
    }),
  );
}

/** Undefined if the agent was not called in the greedy episode, and has a reward of its own in one episode alone. */
function rewardIn(greedy: Episode, agent: string, episode: Episode): number | undefined {
  const turns = inCanonicalOrder(greedy.turns).filter((turn) => turn.agent === agent);
  if (turns.length > 0) return mean(turns.map((turn) => turnReward(greedy, turn)));
  const isOwn = ({ score }: Episode) => agent in score.agents;
  const compares = greedy.failure !== undefined || episode.failure !== undefined || isOwn(greedy) === isOwn(episode);
  return compares ? agentReward(greedy, agent) : undefined;
}
