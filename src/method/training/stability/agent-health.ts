/** The health of an agent, from a step's turns: problems that its rewards and norms do not show. */

import type { AgentHealth, GroupKinds } from '@drmas/engine/events';
import { largest, mean } from '@drmas/engine/math';
import {
  agentReward,
  type Episode,
  type EpisodeGroup,
  successOf,
  type Turn,
  trainedTurns,
  turnReward,
} from '@drmas/engine/nouns';
import { type CostOfCalls, noCost } from '../../../teams/rollout.js';
import { columnOf, countKinds, groupOutcomes } from '../../advantage/analysis/outcome-groups.js';

export interface PlayedTurn {
  readonly episode: Episode;
  readonly turn: Turn;
  /** 0 if no policy learns from its group. */
  readonly advantage: number | readonly number[];
}

/** @param turns The turns of one agent, in all groups of a step */
export function agentHealth(
  turns: readonly PlayedTurn[],
  costOf: CostOfCalls = noCost,
): Omit<AgentHealth, 'groupSpread'> {
  // An agent with a reward of its own pays nothing for calls.
  const costFor = (episode: Episode, agent: string) => (agent in episode.score.agents ? 0 : costOf(episode));
  const invalid = turns.filter(({ turn }) => !turn.valid);
  const groups = grouped(turns, ({ episode }) => episode.task.id);
  const share = chance(groups);
  return {
    duplicates: duplicates(turns),
    ...(isBlind(groups) ? { samePrompt: true as const } : {}),
    ...(share === undefined ? {} : { chance: share }),
    ...(invalid.length === 0
      ? {}
      : { rewardedInvalid: mean(invalid.map(({ advantage }) => Number(best(advantage) > 0))) }),
    groups: kindsOf(
      groups,
      ({ episode, turn }) => agentReward(episode, turn.agent) + costFor(episode, turn.agent),
      ({ episode, turn }) => turn.penalty + costFor(episode, turn.agent),
      // An agent's own reward has no success: there a reward above 0 is right.
      ({ episode, turn }) => {
        const reward = episode.score.agents?.[turn.agent];
        return reward === undefined ? successOf(episode) : Number(reward > 0);
      },
    ),
  };
}

const best = (advantage: number | readonly number[]) =>
  typeof advantage === 'number' ? advantage : largest(advantage);

/** Whether the agent makes the first call of the episodes of several tasks, with one prompt in all of them. */
function isBlind(groups: readonly (readonly PlayedTurn[])[]): boolean {
  const [first, ...others] = groups.flatMap((turns) => turns.find(({ turn }) => turn.turn === 0)?.turn ?? []);
  if (first === undefined || others.length === 0) return false;
  const prompt = JSON.stringify(first.messages);
  return others.every(({ messages }) => JSON.stringify(messages) === prompt);
}

/** The share of turns whose text the agent also wrote in another episode of the task. */
function duplicates(turns: readonly PlayedTurn[]): number {
  const repeated = grouped(turns, ({ episode }) => episode.task.id).flatMap((siblings) => {
    const writers = new Map<string, Set<Episode>>();
    for (const { episode, turn } of siblings)
      writers.set(turn.text, (writers.get(turn.text) ?? new Set()).add(episode));
    return siblings.filter(({ turn }) => (writers.get(turn.text) as Set<Episode>).size > 1);
  });
  return repeated.length / Math.max(1, turns.length);
}

/** With fewer repeated texts in a step their variance says nothing. */
const FEWEST_REPEATED = 4;

/** @param groups The agent's turns of each task */
function chance(groups: readonly (readonly PlayedTurn[])[]): number | undefined {
  const texts = groups.flatMap((turns) => grouped(turns, ({ turn }) => turn.text));
  const [ofTexts, ofTasks] = [pooledVariance(texts), pooledVariance(groups)];
  if (ofTexts.freedom < FEWEST_REPEATED || !(ofTasks.variance > 0)) return undefined;
  return ofTexts.variance / ofTasks.variance;
}

/** The mean variance of rewards within groups, by degrees of freedom: the turns of each group but one. */
function pooledVariance(groups: readonly (readonly PlayedTurn[])[]): { variance: number; freedom: number } {
  let [squares, freedom] = [0, 0];
  for (const turns of groups) {
    const rewards = turns.map(({ episode, turn }) => turnReward(episode, turn));
    const centre = mean(rewards);
    squares += rewards.reduce((sum, reward) => sum + (reward - centre) ** 2, 0);
    freedom += turns.length - 1;
  }
  return { variance: squares / freedom, freedom };
}

/**
 * The episodes of a group that estimators compare: those with a turn of an agent that trains. All of them, if none has
 * such a turn.
 */
export function comparedEpisodes({ episodes }: Pick<EpisodeGroup, 'episodes'>): readonly Episode[] {
  const compared = episodes.filter((episode) => trainedTurns(episode).length > 0);
  return compared.length === 0 ? episodes : compared;
}

/**
 * Groups of episodes by the team's reward without the cost of calls, which counts as a penalty; right is a group whose
 * episodes succeed.
 */
export function groupKinds(groups: readonly EpisodeGroup[], costOf: CostOfCalls = noCost): GroupKinds {
  return kindsOf(
    groups.map(comparedEpisodes),
    (episode) => episode.score.team + costOf(episode),
    (episode) => trainedTurns(episode).reduce((sum, { penalty }) => sum + penalty, costOf(episode)),
    successOf,
  );
}

function kindsOf<Member>(
  groups: readonly (readonly Member[])[],
  outcomeOf: (member: Member) => number,
  penaltyOf: (member: Member) => number,
  successFor: (member: Member) => number,
): GroupKinds {
  const outcomes = groupOutcomes(groups.length, {
    outcome: columnOf(groups, outcomeOf),
    success: columnOf(groups, successFor),
    reward: columnOf(groups, (member) => outcomeOf(member) - penaltyOf(member)),
  });
  const { allRight, allWrong, mixed, penaltiesOnly } = countKinds(outcomes);
  return { allRight, allWrong, mixed, penaltyOnly: penaltiesOnly };
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}
