import type { OpenEstimator } from './define-estimator.js';
import { statisticsOf } from './groups.js';
import { isShared, poolOf, type Rule, type SharedPool, scoresOf } from './normalise.js';
import type { TurnBatch } from './turn-batch.js';

/** Groups with a smaller spread have nothing to judge by: their ratio would be noise over noise. */
const MINIMUM_SIGMA = 0.02;

/**
 * Predicted inflation of each agent's second moment when its turns are normalised by the statistics that all agents
 * share: (sigma_k² + (mu_k - mu)²) / sigma² (the Dr. MAS paper, Lemma 4.2), which is the mean of ((x - mu) / sigma)²
 * over the agent's turns. Variances are those of whole populations, as in the paper's text, so that it is 1 for an
 * agent that is called equally often in all episodes. x, mu and sigma are what an estimator with shared statistics
 * normalises, the episode's score for `grpo` and the turn's reward for `grpo-turn`; for any other estimator they are
 * those of plain GRPO, which it could be compared with. Over the tasks with sigma > 0.02; an agent without such a task
 * is left out, because there is nothing to judge by.
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

/** Turns by the statistics that all agents of a task share. */
export interface SharedScores {
  /** (x - mu) / sigma; not a number in tasks with nothing to judge by. */
  readonly scores: Float64Array; // [turns]
  /** sigma, of the whole population. */
  readonly spreads: Float64Array; // [turns]
}

/**
 * The score of each turn by the mean and the spread (of the whole population) that all agents of its task share, or
 * would share; not a number in tasks with sigma <= 0.02.
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

/** What is normalised against which pool, where all agents share one: plain GRPO for an estimator that shares none. */
function sharedNormalisation(rule: Rule | undefined): { readonly score: Rule['score']; readonly pool: SharedPool } {
  if (rule !== undefined && isShared(rule.mean)) return { score: rule.score, pool: rule.mean };
  if (rule?.shared === 'chains') return { score: 'chain', pool: 'chains' };
  return rule?.shared === 'turns' ? { score: 'turn', pool: 'turns' } : { score: 'episode', pool: 'episodes' };
}
