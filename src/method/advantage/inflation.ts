import type { OpenEstimator } from './define-estimator.js';
import { statisticsOf } from './groups.js';
import { isShared, poolOf, type Rule, type SharedPool, scoresOf } from './normalise.js';
import type { TurnBatch } from './turn-batch.js';

/** In groups with a smaller spread the ratio would be noise divided by noise. */
const MINIMUM_SIGMA = 0.02;

/**
 * The predicted inflation of each agent's second moment if its turns are normalised by the statistics that all agents
 * share: (sigma_k² + (mu_k - mu)²) / sigma² (the Dr. MAS paper, Lemma 4.2). This is the mean of ((x - mu) / sigma)²
 * over the agent's turns. Variances divide by n, as in the paper's text, so the factor is 1 for an agent that is called
 * equally often in all episodes. x is the number that an estimator with shared statistics normalises: the episode's
 * score for `grpo`, the turn's reward for `grpo-turn`. For an estimator without shared statistics it is plain GRPO's.
 * Only tasks with sigma > 0.02 count. An agent without such a task is omitted.
 * @throws ArgumentError as `estimateAdvantages` does
 */
export function predictedInflation(batch: TurnBatch, estimator: OpenEstimator): Record<string, number> {
  const { scores } = sharedScores(batch, estimator);
  const sums = new Map<string, { total: number; turns: number }>();
  batch.turns.forEach(({ agent }, i) => {
    const score = scores[i] as number;
    if (Number.isNaN(score)) return;
    const sum = sums.get(agent) ?? { total: 0, turns: 0 };
    sum.total += score ** 2;
    sum.turns++;
    sums.set(agent, sum);
  });
  return Object.fromEntries([...sums].map(([agent, sum]) => [agent, sum.total / sum.turns]));
}

export interface SharedScores {
  /** (x - mu) / sigma. Not a number in tasks with sigma <= 0.02. */
  readonly scores: Float64Array; // [turns]
  /** sigma, dividing by n. */
  readonly spreads: Float64Array; // [turns]
}

/**
 * The score of each turn by the mean and the spread (dividing by n) that all agents of its task share, or would share.
 * Not a number in tasks with sigma <= 0.02.
 * @throws ArgumentError as `estimateAdvantages` does
 */
export function sharedScores(batch: TurnBatch, { rule, settings }: OpenEstimator): SharedScores {
  const { score, pool } = sharedNormalisation(rule);
  const scores = scoresOf(batch, score, settings);
  const { turns, members, values } = poolOf(batch, pool, scores, settings);
  const { mean, spread } = statisticsOf(members, values, 'n');
  const spreads = scores.map((_, i) => spread[turns[i] as number] as number);
  return {
    spreads,
    scores: scores.map((value, i) => {
      const sigma = spreads[i] as number;
      return sigma > MINIMUM_SIGMA ? (value - (mean[turns[i] as number] as number)) / sigma : Number.NaN;
    }),
  };
}

/** The shared score and pool of a rule. For a rule without shared statistics: plain GRPO's. */
function sharedNormalisation(rule: Rule | undefined): { readonly score: Rule['score']; readonly pool: SharedPool } {
  if (rule !== undefined && isShared(rule.mean)) return { score: rule.score, pool: rule.mean };
  if (rule?.shared === 'chains') return { score: 'chain', pool: 'chains' };
  return rule?.shared === 'turns' ? { score: 'turn', pool: 'turns' } : { score: 'episode', pool: 'episodes' };
}
