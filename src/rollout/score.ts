import type { EpisodeGroup, Score, Turn } from '../core/episode.js';
import type { Reward, RewardParts, RewardValue, TurnReward } from '../teams/team.js';
import { EpisodeFailure } from './episode-failure.js';

/** The score of a failed episode. */
export const noScore: Score = { team: 0, agents: {}, parts: {} };

/**
 * Converts a team's reward into a score: named parts are summed, `true` counts 1.
 *
 * @throws EpisodeFailure with the reason 'reward' when a value is not a finite number or an agent is not in `agents`.
 */
export function scoreOf(reward: Reward, agents: readonly string[]): Score {
  if (typeof reward !== 'object' || reward === null) return { ...noScore, team: finiteReward(reward, 'the reward') };
  if (!('team' in reward)) return sum(reward);
  const agentRewards = Object.entries((reward as { agents?: RewardParts }).agents ?? {}).map(([name, value]) => {
    if (!agents.includes(name))
      throw new EpisodeFailure('reward', `expected one of the agents ${agents.join(', ')}, got '${name}'`);
    return [name, finiteReward(value, `the reward of '${name}'`)] as const;
  });
  const { team } = reward;
  const score =
    typeof team === 'object' && team !== null ? sum(team) : { ...noScore, team: finiteReward(team, 'the reward') };
  return { ...score, agents: Object.fromEntries(agentRewards) };
}

/**
 * The turns with their individual rewards, where the team gave such rewards besides the episode's.
 *
 * @throws EpisodeFailure with the reason 'reward' when a rewarded turn does not exist or is named twice, or a value is
 * not a finite number.
 */
export function rewardedTurns(reward: Reward, turns: readonly Turn[]): readonly Turn[] {
  if (typeof reward !== 'object' || reward === null || !('team' in reward) || reward.turns === undefined) return turns;
  if (!Array.isArray(reward.turns))
    throw new EpisodeFailure('reward', `the rewards of turns are ${String(reward.turns)}, expected a list`);
  const rewards = new Map<number, number>();
  for (const { turn, value } of reward.turns as readonly TurnReward[]) {
    if (!turns.some((played) => played.turn === turn))
      throw new EpisodeFailure('reward', `there is no turn ${String(turn)} to reward, the episode has ${turns.length}`);
    if (rewards.has(turn)) throw new EpisodeFailure('reward', `turn ${turn} is rewarded twice`);
    rewards.set(turn, finiteReward(value, `the reward of turn ${turn}`));
  }
  return turns.map((turn) => {
    const stepReward = rewards.get(turn.turn);
    return stepReward === undefined ? turn : { ...turn, stepReward };
  });
}

function sum(named: RewardParts): Score {
  const parts = Object.entries(named).map(
    ([name, value]) => [name, finiteReward(value, `the part '${name}'`)] as const,
  );
  return { ...noScore, team: parts.reduce((total, [, value]) => total + value, 0), parts: Object.fromEntries(parts) };
}

function finiteReward(value: RewardValue, what: string): number {
  const number = typeof value === 'boolean' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number))
    throw new EpisodeFailure('reward', `${what} is ${String(value)}, expected a finite number`);
  return number;
}

/** The treatment of failed episodes: left out, or kept with their score of 0. */
export type FailureRule = 'exclude' | 'zero';

/** Applies the rule to groups. Under 'exclude', a group whose episodes all failed disappears. */
export function applyFailureRule(groups: readonly EpisodeGroup[], rule: FailureRule): EpisodeGroup[] {
  if (rule === 'zero') return [...groups];
  return groups
    .map(({ task, episodes }) => ({ task, episodes: episodes.filter(({ failure }) => failure === undefined) }))
    .filter(({ episodes }) => episodes.length > 0);
}
