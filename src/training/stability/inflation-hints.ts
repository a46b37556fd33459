import { inflationAdvice, sharesMean } from '../../advantage/analysis/diagnosis.js';
import { openEstimator } from '../../advantage/estimators/index.js';
import type { Warning } from '../../core/events.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { StepAdvantages } from '../step/advantages.js';

/**
 * At the first step of a run a warning for each agent that the recipe's estimator inflates by more than 2, or feeds
 * less of its own rewards than of anything else: why, and what to set. None where agents do not share a mean.
 */
export function inflationHints(
  { advantage, training }: Pick<Recipe, 'advantage' | 'training'>,
  step: number,
  { inflation, ownShare, calls }: Pick<StepAdvantages, 'inflation' | 'ownShare' | 'calls'>,
): Warning[] {
  if (step !== 1 || !sharesMean(openEstimator(advantage))) return [];
  const { type } = advantage;
  const { groupSize } = training;
  return Object.entries(calls).flatMap(([agent, ofAgent]) => {
    const diagnosis = { inflation: inflation[agent], ownShare: ownShare[agent], calls: ofAgent };
    const advice = inflationAdvice(agent, diagnosis, { type, groupSize });
    if (advice === undefined) return [];
    return [{ type: 'warning', code: 'inflation', step, agent, message: `${advice.says} ${advice.remedy}` }];
  });
}
