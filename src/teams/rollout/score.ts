import { isObject, ownValue } from '@drmas/engine/errors';
import {
  type Episode,
  type EpisodeGroup,
  isLesson,
  responseTokens,
  type Score,
  successOf,
  type Turn,
} from '@drmas/engine/nouns';
import type { Metrics, Reward, RewardValue, TurnReward } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';
import { finiteReward, LARGEST, measured, requireNamed, share, sumOf, valueText } from './reward-values.js';
import type { AgentSettings, RolloutContext } from './rollout-context.js';

/** The score of an episode without turns or without a reward. */
export const noScore: Score = { team: 0, agents: {}, parts: {} };

export interface EpisodeVerdict {
  readonly success?: RewardValue | undefined;
  readonly metrics?: Metrics | undefined;
}

/**
 * Converts a team's reward and measurements into a score: named parts are summed, `true` counts 1.
 *
 * @throws EpisodeFailure with the reason 'reward' when a value is not a finite number, an agent is not in `agents`, or
 * the success does not lie from 0 to 1.
 */
export function scoreOf(reward: Reward, agents: readonly string[], { success, metrics }: EpisodeVerdict = {}): Score {
  return {
    ...rewardScore(reward, agents),
    ...(success === undefined ? {} : { success: share(success, 'the success') }),
    ...(metrics === undefined || Object.keys(metrics).length === 0 ? {} : { metrics: measured(metrics) }),
  };
}

function rewardScore(reward: Reward, agents: readonly string[]): Score {
  if (!hasTeam(reward)) {
    const alone = ['agents', 'turns'].find((name) => isObject(reward) && isObject(reward[name]));
    if (alone !== undefined)
      throw new EpisodeFailure('reward', `the reward has '${alone}' and no 'team', expected { team, ${alone} }`);
    const { sum, parts = {} } = sumOf(reward, 'the reward');
    return { ...noScore, team: sum, parts };
  }
  const stranger = Object.keys(reward).find((key) => !['team', 'agents', 'turns'].includes(key));
  if (stranger !== undefined)
    throw new EpisodeFailure('reward', `the reward has 'team' and '${stranger}', expected { team, agents, turns }`);
  const { sum, parts = {} } = sumOf(reward.team, 'the reward');
  const { agents: own = {} } = reward;
  requireNamed(own, 'the rewards of agents', 'an object with a reward for each name');
  const sums = Object.entries(own).map(([name, value]) => {
    if (!agents.includes(name))
      throw new EpisodeFailure('reward', `expected one of the agents ${agents.join(', ')}, got '${name}'`);
    return { name, ...sumOf(value, `the reward of '${name}'`) };
  });
  const agentParts = sums.flatMap(({ name, parts }) => (parts === undefined ? [] : [[name, parts] as const]));
  return {
    team: sum,
    agents: Object.fromEntries(sums.map(({ name, sum }) => [name, sum])),
    parts,
    ...(agentParts.length === 0 ? {} : { agentParts: Object.fromEntries(agentParts) }),
  };
}

type PricedAgents = Readonly<Record<string, Pick<AgentSettings, 'callCost' | 'tokenCost'>>>;

const pricedAgents = (agents: PricedAgents): string[] =>
  Object.entries(agents).flatMap(([agent, { callCost = 0, tokenCost = 0 }]) =>
    callCost > 0 || tokenCost > 0 ? [agent] : [],
  );

/** The name of the part of the team's reward that holds the cost of calls and tokens. */
const CALLS = 'calls';

/**
 * The score after the cost of the episode's calls is taken off the team's reward, as a separate part. Without a cost
 * the score stays as it is, and success never changes. A price for calls lets a team learn when not to call
 * (MANSA: Mguni et al., arXiv 2302.05910, in which a central controller is switched on at a price).
 *
 * @throws EpisodeFailure with the reason 'reward' if the team's reward has a part of the same name, or exceeds the
 * largest reward.
 */
export function lessCallCosts(score: Score, turns: readonly Turn[], agents: PricedAgents): Score {
  if (pricedAgents(agents).length === 0) return score;
  if (CALLS in score.parts)
    throw new EpisodeFailure('reward', `the part '${CALLS}' is the cost of calls; name the team's otherwise`);
  const cost = totalCost(turns, agents);
  const named = Object.keys(score.parts).length === 0 ? { outcome: score.team } : score.parts;
  const team = finiteReward(score.team - cost, 'the reward less the cost of calls');
  return { ...score, team, parts: { ...named, [CALLS]: 0 - cost }, success: successOf({ score }) };
}

/** The cost of calls and tokens. Counts come first, so that the sum does not depend on the order of the calls. */
function totalCost(turns: readonly Turn[], agents: PricedAgents): number {
  return Object.entries(agents).reduce((sum, [agent, { callCost = 0, tokenCost = 0 }]) => {
    const ofAgent = turns.filter((turn) => turn.agent === agent);
    const tokens = ofAgent.reduce((total, turn) => total + (responseTokens(turn) ?? 0), 0);
    return sum + ofAgent.length * callCost + tokens * tokenCost;
  }, 0);
}

/**
 * The score of a failed episode: 0 minus the cost of its calls. If failing were free of the cost, a team would learn to
 * fail.
 */
export function failedScore(
  turns: readonly Turn[],
  { agents, partWeights }: Pick<RolloutContext, 'agents' | 'partWeights'>,
): Score {
  const cost = Math.min(LARGEST, totalCost(playedTurns(turns), agents));
  if (cost === 0) return noScore;
  const weighted = Math.min(LARGEST, cost * (ownValue(partWeights ?? {}, CALLS) ?? 1));
  return { team: 0 - weighted, agents: {}, parts: { [CALLS]: -cost }, success: 0 };
}

/** The turns of `play`, without the turns of judges that the reward called. */
export const playedTurns = (turns: readonly Turn[]): Turn[] => turns.filter(({ judging }) => judging !== true);

/** The cost of calls and tokens that was taken off an episode's team reward, times its weight in the recipe. */
export type CostOfCalls = (episode: Pick<Episode, 'score'>) => number;

export const noCost: CostOfCalls = () => 0;

/** Without a price, a part of that name is the team's own. */
export function costOfCalls(agents: PricedAgents, weights: PartWeights = {}): CostOfCalls {
  if (pricedAgents(agents).length === 0) return noCost;
  return ({ score: { parts } }) => 0 - (parts[CALLS] ?? 0) * (ownValue(weights, CALLS) ?? 1);
}

/** Whether a reward gives the team's reward apart from agents and turns. */
function hasTeam(reward: Reward): reward is Extract<Reward, { readonly team: unknown }> {
  return typeof reward === 'object' && reward !== null && 'team' in reward;
}

/**
 * The turns with their individual rewards, if the team gave any besides the episode's reward.
 *
 * @throws EpisodeFailure with the reason 'reward' when a rewarded turn does not exist or is named twice, or a value is
 * not a finite number.
 */
export function rewardedTurns(reward: Reward, turns: readonly Turn[]): readonly Turn[] {
  if (!hasTeam(reward) || reward.turns === undefined) return turns;
  if (!Array.isArray(reward.turns))
    throw new EpisodeFailure('reward', `the rewards of turns are ${valueText(reward.turns)}, expected a list`);
  const rewards = new Map<number, Pick<Turn, 'stepReward' | 'duration'>>();
  for (const each of reward.turns as readonly (TurnReward | null | undefined)[]) {
    if (typeof each !== 'object' || each === null)
      throw new EpisodeFailure('reward', `the reward of a turn is ${valueText(each)}, expected { turn, value }`);
    const { turn, value, duration } = each;
    if (!turns.some((played) => played.turn === turn))
      throw new EpisodeFailure(
        'reward',
        `there is no turn ${valueText(turn)} to reward, the episode has ${turns.length}`,
      );
    if (rewards.has(turn)) throw new EpisodeFailure('reward', `turn ${turn} is rewarded twice`);
    if (duration !== undefined && !(typeof duration === 'number' && duration >= 0 && duration <= LARGEST))
      throw new EpisodeFailure(
        'reward',
        `the duration of turn ${turn} is ${valueText(duration)}, expected a number >= 0`,
      );
    const stepReward = finiteReward(value, `the reward of turn ${turn}`);
    rewards.set(turn, { stepReward, ...(duration === undefined ? {} : { duration }) });
  }
  return turns.map((turn) => {
    const rewarded = rewards.get(turn.turn);
    return rewarded === undefined ? turn : { ...turn, ...rewarded };
  });
}

/** The treatment of failed episodes: left out, or kept with their score of 0. */
export type FailureRule = 'exclude' | 'zero';

/** Whether the rewards of an episode count under the rule. A failure that no agent's text caused is none of them. */
export const isMeasured = (episode: Pick<Episode, 'failure' | 'turns'>, rule: FailureRule): boolean =>
  rule === 'zero' || isLesson(episode);

/**
 * Applies the rule to groups. Under 'exclude', a group whose episodes all failed disappears. Episodes that failed by
 * the agents' own doing stay: they teach.
 */
export function applyFailureRule(groups: readonly EpisodeGroup[], rule: FailureRule): EpisodeGroup[] {
  if (rule === 'zero') return [...groups];
  return groups
    .map(({ task, episodes }) => ({ task, episodes: episodes.filter((episode) => isMeasured(episode, rule)) }))
    .filter(({ episodes }) => episodes.length > 0);
}

type PartWeights = NonNullable<RolloutContext['partWeights']>;

/**
 * The score in which the team's reward is the weighted sum of its parts: one preference between aims (MO-MIX: Hu et
 * al., arXiv 2603.00730, in which the weights are an input of the policy). Parts and success stay unchanged.
 * @throws EpisodeFailure with the reason 'reward' if the sum exceeds the largest reward
 */
export function withPartWeights(score: Score, weights: PartWeights | undefined): Score {
  const parts = Object.entries(score.parts);
  if (weights === undefined || parts.length === 0) return score;
  const sum = parts.reduce((total, [name, value]) => total + value * (ownValue(weights, name) ?? 1), 0);
  const team = finiteReward(sum, 'the sum of the weighted parts of the reward');
  return { ...score, team, success: successOf({ score }) };
}

/**
 * Weighted parts that occur in no episode's reward, so that their weights change nothing.
 * @param whose The rewards with parts: the team's alone, or single agents' too
 */
export function missingParts(
  episodes: readonly Pick<Episode, 'score'>[],
  weights: PartWeights = {},
  whose: 'team' | 'all' = 'team',
): string[] {
  const partsOf = ({ parts, agentParts = {} }: Score) =>
    whose === 'team' ? [parts] : [parts, ...Object.values(agentParts)];
  return Object.keys(weights).filter(
    (name) => !episodes.some(({ score }) => partsOf(score).some((of) => Object.hasOwn(of, name))),
  );
}
