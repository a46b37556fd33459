import type { OpenEstimator } from './define-estimator.js';
import { statisticsOf } from './groups.js';
import { sharedScores } from './inflation.js';
import type { TurnBatch } from './turn-batch.js';

/** The fewest turns, beyond the first of each task, from which a share is estimated: of fewer it would be chance. */
const FEWEST_TURNS = 8;

/**
 * How much of an agent's squared scores under the statistics that all agents share follows from its own rewards, from 0
 * to 1. With z the score of a turn, and d the distance of its reward from the mean of the agent's turns of the task, in
 * units of the task's shared spread, it is
 *
 *     ((Σ z d)² / Σ d² / (turns - tasks)) / (Σ z² / turns),
 *
 * the squared cosine between the advantages by shared statistics and those by the agent's own, corrected for the means
 * that d takes out. The rest tells the agent nothing about which of its turns were better: it is the distance of its
 * mean from the shared one, and what other agents earned. Where only the means differ it is 1 / (1 + (mu_k - mu)² /
 * sigma_k²); of an agent that is called equally often in every episode and earns what the team earns it is 1. The
 * factor of Lemma 4.2 cannot tell: it is the size of z, and stays near 1 where an agent's rewards spread little beside
 * those of the others. Over the tasks that `sharedScores` judges by; an agent with too few turns there, or whose
 * rewards never differ within a task, is left out.
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
