import type { OpenEstimator } from './define-estimator.js';
import { statisticsOf } from './groups.js';
import { sharedScores } from './inflation.js';
import type { TurnBatch } from './turn-batch.js';

/** The fewest turns, without the first of each task, for an estimate. With fewer turns it would be chance. */
const FEWEST_TURNS = 8;

/**
 * The share of an agent's squared scores under shared statistics that its own rewards explain, from 0 to 1. z is the
 * score of a turn. d is the turn's reward minus the mean of the agent's turns of the task, in units of the task's
 * shared spread. The share is
 *
 *     ((Σ z d)² / Σ d² / (turns - tasks)) / (Σ z² / turns),
 *
 * the squared cosine between the advantages by shared statistics and the advantages by the agent's own statistics,
 * corrected for the means in d. The rest of the scores does not tell the agent which of its turns were better: it is
 * the distance of the agent's mean from the shared mean, and the rewards of other agents. If only the means differ, the
 * share is 1 / (1 + (mu_k - mu)² / sigma_k²). It is 1 for an agent that is called equally often in every episode and
 * earns the team's reward. The factor of Lemma 4.2 does not show this: it measures the size of z, and stays near 1 if
 * an agent's rewards vary little compared with the others' rewards. Only tasks with enough spread for `sharedScores`
 * count. An agent with too few turns there, or whose rewards never differ within a task, is omitted.
 * @throws ArgumentError as `estimateAdvantages` does
 */
export function ownShares(batch: TurnBatch, estimator: OpenEstimator): Record<string, number> {
  const { scores, spreads } = sharedScores(batch, estimator);
  const { mean, size } = statisticsOf(batch.taskAgents, batch.rewards);
  const sums = batch.agentNames.map(() => ({ zz: 0, zd: 0, dd: 0, turns: 0, beyondFirst: 0 }));
  for (let i = 0; i < scores.length; i++) {
    const z = scores[i] as number;
    if (Number.isNaN(z)) continue;
    const group = batch.taskAgents.of[i] as number;
    const d = ((batch.rewards[i] as number) - (mean[group] as number)) / (spreads[i] as number);
    const sum = sums[batch.agents.of[i] as number] as (typeof sums)[number];
    sum.zz += z * z;
    sum.zd += z * d;
    sum.dd += d * d;
    sum.turns++;
    sum.beyondFirst += 1 - 1 / (size[group] as number);
  }
  return Object.fromEntries(
    batch.agentNames.flatMap((agent, k) => {
      const { zz, zd, dd, turns, beyondFirst } = sums[k] as (typeof sums)[number];
      if (beyondFirst < FEWEST_TURNS || dd < Number.EPSILON || zz === 0) return [];
      return [[agent, Math.min(1, (zd * zd) / dd / beyondFirst / (zz / turns))]];
    }),
  );
}
