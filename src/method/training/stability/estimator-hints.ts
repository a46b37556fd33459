import type { Warning } from '../../../base/events.js';
import { aloneAdvice, inflationAdvice, sharesMean } from '../../advantage/analysis/diagnosis.js';
import type { OpenEstimator } from '../../advantage/define-estimator.js';
import type { StepAdvantages } from '../advantages/advantages.js';

/**
 * Warnings at the first step of a run, for each agent that the recipe's estimator does not suit, with the reason and
 * the setting to change. If agents share a mean, these are agents whose gradient is inflated by more than 2, or whose
 * own rewards explain less than half of their squared scores. If each agent has its own mean, these are agents that are
 * often alone in their group.
 */
export function estimatorHints(
  { estimator, groupSize }: { readonly estimator: OpenEstimator; readonly groupSize: number },
  step: number,
  { inflation, ownShare, calls }: Pick<StepAdvantages, 'inflation' | 'ownShare' | 'calls'>,
): Warning[] {
  if (step !== 1) return [];
  const { type } = estimator;
  return Object.entries(calls).flatMap(([agent, ofAgent]): Warning[] => {
    const diagnosis = { inflation: inflation[agent], ownShare: ownShare[agent], calls: ofAgent };
    const shared = sharesMean(estimator);
    const advice = shared
      ? inflationAdvice(agent, diagnosis, { type, groupSize })
      : aloneAdvice(agent, ofAgent, estimator);
    if (advice === undefined) return [];
    const code = shared ? 'inflation' : 'alone';
    return [{ type: 'warning', code, step, agent, message: `${advice.says} ${advice.remedy}` }];
  });
}
