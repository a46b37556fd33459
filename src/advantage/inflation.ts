import type { TurnRecord } from '../core/advantage.js';
import type { OpenEstimator } from './define-estimator.js';
import { type Estimator, openEstimator } from './estimators/index.js';
import { type Pool, type PoolStatistics, poolOf, type Rule, type SharedPool, statisticsOfPool } from './normalise.js';
import { TurnBatch } from './turn-batch.js';

/** Groups with a smaller spread have nothing to judge by: their ratio would be noise over noise. */
const MINIMUM_SIGMA = 0.02;

/**
 * Predicted inflation of each agent's second moment when its turns are normalised by the statistics that all agents
 * share: (sigma_k² + (mu_k - mu)²) / sigma² (the Dr. MAS paper, Lemma 4.2). mu_k, sigma_k are over the agent's turns of
 * a task; mu, sigma are the task-wide ones of the estimator (all turns for `grpo-turn` and for `partition` with
 * `unit: 'turn'`, the episodes' scores otherwise: for an agent-wise estimator they are those of plain GRPO). Averaged
 * over the agent's turns of the tasks with sigma > 0.02; an agent without such a task is left out, because there is
 * nothing to judge by.
 * @throws ArgumentError as `estimateAdvantages` does
 */
export function predictedInflation(batch: TurnBatch, estimator: OpenEstimator): Record<string, number> {
  const { agent: ofAgents, shared } = statisticsFor(batch, estimator);
  const sums = new Map<string, { total: number; turns: number }>();
  batch.turns.forEach(({ agent }, i) => {
    const k = ofAgents.of[i] as number;
    const g = shared.of[i] as number;
    const sigma = shared.spread[g] as number;
    if (sigma <= MINIMUM_SIGMA) return;
    const between = (ofAgents.mean[k] as number) - (shared.mean[g] as number);
    const sum = sums.get(agent) ?? { total: 0, turns: 0 };
    sum.total += ((ofAgents.spread[k] as number) ** 2 + between ** 2) / sigma ** 2;
    sum.turns++;
    sums.set(agent, sum);
  });
  return Object.fromEntries([...sums].map(([agent, sum]) => [agent, sum.total / sum.turns]));
}

/**
 * Each turn's reward normalised by the statistics that all agents share and by its agent's, as Lemma 4.2 compares them;
 * not a number in tasks with sigma <= 0.02, 0 for an agent whose rewards do not differ.
 * @throws ArgumentError as `estimateAdvantages` does
 */
export function inflationScores(
  turns: readonly TurnRecord[],
  estimator: Estimator,
): { readonly shared: Float64Array; readonly agent: Float64Array } {
  const batch = new TurnBatch(turns);
  const { agent, shared } = statisticsFor(batch, openEstimator(estimator));
  const normalised = ({ of, mean, spread }: PoolStatistics) =>
    batch.rewards.map((reward, i) => {
      const group = of[i] as number;
      const sigma = spread[group] as number;
      return sigma > 0 ? (reward - (mean[group] as number)) / sigma : 0;
    });
  const judged = (score: number, i: number) =>
    (shared.spread[shared.of[i] as number] as number) > MINIMUM_SIGMA ? score : Number.NaN;
  return { shared: normalised(shared).map(judged), agent: normalised(agent).map(judged) };
}

function statisticsFor(batch: TurnBatch, { settings, rule }: OpenEstimator) {
  const statistics = (pool: Pool) => statisticsOfPool(poolOf(batch, pool, batch.rewards, settings), 'zero');
  return { agent: statistics('agent'), shared: statistics(sharedPool(rule)) };
}

const isShared = (pool: Pool | 'none'): pool is SharedPool => pool === 'episodes' || pool === 'turns';

/** The pool whose statistics all agents share, or would share. */
function sharedPool(rule: Rule | undefined): SharedPool {
  if (rule === undefined) return 'episodes';
  return rule.shared ?? (isShared(rule.mean) ? rule.mean : 'episodes');
}

/**
 * Tells whether all agents of a task share one mean and one spread, so that the predicted inflation is what happens.
 */
export function inflates({ rule }: OpenEstimator): boolean {
  return rule !== undefined && isShared(rule.mean) && isShared(rule.spread);
}
