import type { EpisodeGroup, Score, Turn } from '../core/episode.js';
import type { Reward, RewardParts, RewardValue, TurnReward } from '../teams/team.js';
import { EpisodeFailure } from './episode-failure.js';

/** What a failed episode scores. */
export const noScore: Score = { team: 0, agents: {}, parts: {} };

/**
 * A team's reward as a score: named parts are summed, truth counts 1.
 *
 * @throws EpisodeFailure with the reason 'reward' when a value is not a finite number or an agent is not in `agents`.
 */
export function scoreOf(reward: Reward, agents: readonly string[]): Score {
  if (typeof reward !== 'object' || reward === null) return { ...noScore, team: finite(reward, 'the reward') };
  if (!('team' in reward)) return sum(reward);
  const own = Object.entries((reward as { agents?: RewardParts }).agents ?? {}).map(([name, value]) => {
    if (!agents.includes(name))
      throw new EpisodeFailure('reward', `expected one of the agents ${agents.join(', ')}, got '${name}'`);
    return [name, finite(value, `the reward of '${name}'`)] as const;
  });
  const { team } = reward;
  const score =
    typeof team === 'object' && team !== null ? sum(team) : { ...noScore, team: finite(team, 'the reward') };
  return { ...score, agents: Object.fromEntries(own) };
}

/**
 * The turns with what the team gave them besides the episode's reward.
 *
 * @throws EpisodeFailure with the reason 'reward' when a turn is not among them or named twice, or a value is not a finite number.
 */
export function rewardedTurns(reward: Reward, turns: readonly Turn[]): readonly Turn[] {
  if (typeof reward !== 'object' || reward === null || !('team' in reward) || reward.turns === undefined) return turns;
  if (!Array.isArray(reward.turns))
    throw new EpisodeFailure('reward', `the rewards of turns are ${String(reward.turns)}, expected a list`);
  const own = new Map<number, number>();
  for (const { turn, value } of reward.turns as readonly TurnReward[]) {
    if (!turns.some((known) => known.turn === turn))
      throw new EpisodeFailure('reward', `there is no turn ${String(turn)} to reward, the episode has ${turns.length}`);
    if (own.has(turn)) throw new EpisodeFailure('reward', `turn ${turn} is rewarded twice`);
    own.set(turn, finite(value, `the reward of turn ${turn}`));
  }
  return turns.map((turn) => {
    const stepReward = own.get(turn.turn);
    return stepReward === undefined ? turn : { ...turn, stepReward };
  });
}

function sum(named: RewardParts): Score {
  const parts = Object.entries(named).map(([name, value]) => [name, finite(value, `the part '${name}'`)] as const);
  return { ...noScore, team: parts.reduce((total, [, value]) => total + value, 0), parts: Object.fromEntries(parts) };
}

function finite(value: RewardValue, what: string): number {
  const number = typeof value === 'boolean' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number))
    throw new EpisodeFailure('reward', `${what} is ${String(value)}, expected a finite number`);
  return number;
}

/** What becomes of failed episodes: left out, or kept with the score 0 that they have. */
export type FailureRule = 'exclude' | 'zero';

/** The groups as learning and statistics are to see them. A group whose episodes all failed vanishes under 'exclude'. */
export function applyFailureRule(groups: readonly EpisodeGroup[], rule: FailureRule): EpisodeGroup[] {
  if (rule === 'zero') return [...groups];
  return groups
    .map(({ task, episodes }) => ({ task, episodes: episodes.filter(({ failure }) => failure === undefined) }))
    .filter(({ episodes }) => episodes.length > 0);
}
