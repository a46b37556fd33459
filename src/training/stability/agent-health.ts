/** What a step's turns say about the health of an agent, beside its rewards and norms. */
import {
  agentReward,
  type Episode,
  type EpisodeGroup,
  type Turn,
  trainedTurns,
  turnReward,
} from '../../core/episode.js';
import type { AgentHealth, GroupKinds } from '../../core/events.js';
import { mean, standardDeviation } from '../../core/statistics.js';
import { magnitude } from '../step/advantages.js';

export interface PlayedTurn {
  readonly episode: Episode;
  readonly turn: Turn;
  /** 0 where nothing is learnt from its group. */
  readonly advantage: number | readonly number[];
}

/** @param turns Of one agent, of all groups of a step */
export function agentHealth(turns: readonly PlayedTurn[]): AgentHealth {
  const groups = grouped(turns, ({ episode }) => episode.task.id);
  const invalid = turns.filter(({ turn }) => !turn.valid);
  return {
    groupSpread: mean(groups.map((group) => standardDeviation(group.map(rewardOf)))),
    duplicates: duplicates(turns),
    rewardedInvalid: mean(invalid.map(({ advantage }) => (best(advantage) > 0 ? 1 : 0))),
    groups: kindsOf(
      groups.map((group) =>
        group.map(({ episode, turn }) => ({ outcome: agentReward(episode, turn.agent), penalty: turn.penalty })),
      ),
    ),
  };
}

const rewardOf = ({ episode, turn }: PlayedTurn) => turnReward(episode, turn);
const best = (advantage: number | readonly number[]) =>
  typeof advantage === 'number' ? advantage : Math.max(...advantage);

/** Share of turns that a sibling (same task, same call of the agent) answered in the very same words. */
function duplicates(turns: readonly PlayedTurn[]): number {
  const siblings = grouped(turns, ({ episode, turn }) => JSON.stringify([episode.task.id, turn.call]));
  const repeated = siblings.map((group) => {
    const times = new Map<string, number>();
    for (const { turn } of group) times.set(turn.text, (times.get(turn.text) ?? 0) + 1);
    return [...times.values()].reduce((sum, count) => sum + (count > 1 ? count : 0), 0);
  });
  return repeated.reduce((sum, count) => sum + count, 0) / Math.max(1, turns.length);
}

/** Groups of episodes by the team's reward. */
export function groupKinds(groups: readonly EpisodeGroup[]): GroupKinds {
  return kindsOf(
    groups.map(({ episodes }) =>
      episodes.map((episode) => ({
        outcome: episode.score.team,
        penalty: trainedTurns(episode).reduce((sum, { penalty }) => sum + penalty, 0),
      })),
    ),
  );
}

interface Judged {
  /** The reward without what single turns earned or paid. */
  readonly outcome: number;
  readonly penalty: number;
}

function kindsOf(groups: readonly (readonly Judged[])[]): GroupKinds {
  const kinds = { allRight: 0, allWrong: 0, mixed: 0, penaltyOnly: 0 };
  for (const group of groups) {
    const first = group[0] ?? { outcome: 0, penalty: 0 };
    if (group.some(({ outcome }) => outcome !== first.outcome)) {
      kinds.mixed++;
      continue;
    }
    kinds[first.outcome > 0 ? 'allRight' : 'allWrong']++;
    if (group.some(({ penalty }) => penalty !== first.penalty)) kinds.penaltyOnly++;
  }
  return kinds;
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

/** The largest |advantage| of these turns. */
export function largestAdvantage(turns: readonly PlayedTurn[]): number {
  return turns.reduce((most, { advantage }) => Math.max(most, magnitude(advantage)), 0);
}
