/** The events of a step, from its results. */

import type { AgentStep, EpisodeFailed, Step } from '../../../base/events.js';
import { type EpisodeGroup, inCanonicalOrder, isLesson } from '../../../base/nouns.js';
import { type AdvantageSizes, advantageSizes } from '../../advantage/analysis/advantage-sizes.js';
import { type AgentRewards, agentRewards } from '../../advantage/analysis/agent-rewards.js';
import { TurnBatch } from '../../advantage/turn-batch.js';
import { rewardRecord } from '../advantages/advantages.js';
import type { Played } from '../play/played.js';
import type { Learner } from '../run/learner.js';
import { countChains } from '../samples/chains.js';
import type { PlayedTurn } from '../stability/agent-health.js';
import type { Learnt } from '../update/learnt.js';
import { agentRecorders } from './agent-recorders.js';
import { recordAll } from './recorder.js';
import { stepRecorders } from './step-recorders.js';
import { stepSpending } from './step-spending.js';

/** The event of a step, joined from the parts of all recorders. */
export function stepEvent(learners: readonly Learner[], played: Played, learnt: Learnt): Step {
  const { advantages, updates } = learnt;
  const episodes = played.scored.flatMap((group) => group.episodes);
  const turns = episodes.flatMap((episode) =>
    inCanonicalOrder(episode.turns).map(
      (turn): PlayedTurn => ({ episode, turn, advantage: advantages.byTurn.get(turn)?.advantage ?? 0 }),
    ),
  );
  const batch = new TurnBatch(turns.map(({ episode, turn }) => rewardRecord(episode, turn)));
  const rewards = agentRewards(batch);
  const sizes = advantageSizes(
    batch,
    turns.map(({ advantage }) => advantage),
  );
  const spending = stepSpending(learners, played, learnt);
  const shared = { played, learnt, episodes, spending, chains: countChains(episodes) };
  const agents = batch.agentNames.sort().map((agent) => {
    const subject = {
      ...shared,
      agent,
      turns: turns.filter(({ turn }) => turn.agent === agent),
      rewards: rewards[agent] as AgentRewards,
      sizes: sizes[agent] as AdvantageSizes,
      update: Object.values(updates).find((update) => agent in update.agents)?.agents[agent],
    };
    return [agent, recordAll(agentRecorders, subject) as AgentStep] as const; // the recorders write all of its fields
  });
  return recordAll(stepRecorders, { ...shared, agents: Object.fromEntries(agents) }) as Step; // as above
}

/** An event for each failed episode, with the recipe's action. */
export function failureEvents(
  groups: readonly EpisodeGroup[],
  step: number,
  action: EpisodeFailed['action'],
): EpisodeFailed[] {
  return groups
    .flatMap(({ episodes }) => episodes)
    .flatMap((episode) => {
      const { task, sample, failure } = episode;
      if (failure === undefined) return [];
      const { scoring: _, ...record } = failure;
      const taken = isLesson(episode) ? 'zero' : action;
      return [{ type: 'episode.failed', step, task: task.id, episode: sample, ...record, action: taken } as const];
    });
}
