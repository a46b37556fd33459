import { aloneAdvice, inflationAdvice, sharesMean } from '../../advantage/analysis/diagnosis.js';
import { openEstimator } from '../../advantage/estimators/index.js';
import type { Warning } from '../../core/events.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { StepAdvantages } from '../step/advantages.js';

/**
 * At the first step of a run a warning for each agent that the recipe's estimator does not serve: why, and what to set.
 * With a mean that agents share, one that is inflated by more than 2, or fed less of its own rewards than of anything
 * else; with means of agents' own, one that often has nothing of its own to be compared with.
 */
export function estimatorHints(
  { advantage, training }: Pick<Recipe, 'advantage' | 'training'>,
  step: number,
  { inflation, ownShare, calls }: Pick<StepAdvantages, 'inflation' | 'ownShare' | 'calls'>,
): Warning[] {
  if (step !== 1) return [];
  const estimator = openEstimator(advantage);
  const { type } = advantage;
  const { groupSize } = training;
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
