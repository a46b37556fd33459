/** Weights of the named parts of a team's reward, if a recipe sets them. */
import { type Episode, type Score, successOf } from '../../base/nouns.js';
import { finiteReward } from './reward-values.js';
import type { RolloutContext } from './rollout-context.js';

type PartWeights = NonNullable<RolloutContext['partWeights']>;

/**
 * The score in which the team's reward is the weighted sum of its parts: one preference between aims (MO-MIX: Hu et
 * al., arXiv 2603.00730, in which the weights are an input of the policy). Parts and success stay unchanged.
 * @throws EpisodeFailure with the reason 'reward' if the sum exceeds the largest reward
 */
export function withPartWeights(score: Score, weights: PartWeights | undefined): Score {
  const parts = Object.entries(score.parts);
  if (weights === undefined || parts.length === 0) return score;
  const sum = parts.reduce((total, [name, value]) => total + value * (weights[name] ?? 1), 0);
  const team = finiteReward(sum, 'the sum of the weighted parts of the reward');
  return { ...score, team, success: successOf({ score }) };
}

/** Weighted parts that occur in no episode's reward, so that their weights change nothing. */
export function missingParts(episodes: readonly Pick<Episode, 'score'>[], weights: PartWeights = {}): string[] {
  return Object.keys(weights).filter((name) => !episodes.some(({ score }) => name in score.parts));
}
