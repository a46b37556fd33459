/** What the named parts of a team's reward count, where a recipe says so. */
import { type Episode, type Score, successOf } from '../core/episode.js';
import type { RolloutContext } from './rollout-context.js';
import { finiteReward } from './score.js';

type PartWeights = NonNullable<RolloutContext['partWeights']>;

/**
 * The score in which the team's reward is the sum of its parts, each times its weight: one preference between aims
 * (MO-MIX: Hu et al., arXiv 2603.00730, in which the weights are an input of the policy). The parts stay as they are,
 * and success is what it was.
 * @throws EpisodeFailure with the reason 'reward' when the sum becomes larger than a reward may be
 */
export function withPartWeights(score: Score, weights: PartWeights | undefined): Score {
  const parts = Object.entries(score.parts);
  if (weights === undefined || parts.length === 0) return score;
  const sum = parts.reduce((total, [name, value]) => total + value * (weights[name] ?? 1), 0);
  const team = finiteReward(sum, 'the sum of the weighted parts of the reward');
  return { ...score, team, success: successOf({ score }) };
}

/** The weighted parts that no episode's reward has, whose weights change nothing. */
export function missingParts(episodes: readonly Pick<Episode, 'score'>[], weights: PartWeights = {}): string[] {
  return Object.keys(weights).filter((name) => !episodes.some(({ score }) => name in score.parts));
}
