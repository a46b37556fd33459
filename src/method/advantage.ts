/** Door of `method`: estimators of advantages and the analysis of groups. */
export { type AdvantageSizes, advantageSizes, magnitude } from './advantage/analysis/advantage-sizes.js';
export { type AgentCalls, agentCalls } from './advantage/analysis/agent-calls.js';
export { type AgentRewards, agentRewards } from './advantage/analysis/agent-rewards.js';
export { comparableEstimators, usualEstimators } from './advantage/analysis/compared-estimators.js';
export {
  type AgentDiagnosis,
  aloneAdvice,
  explainInflation,
  inflationAdvice,
  isNotable,
  sharesMean,
} from './advantage/analysis/diagnosis.js';
export { loneEpisodes } from './advantage/analysis/lone-episodes.js';
export {
  type Column,
  columnOf,
  countKinds,
  type GroupOutcome,
  groupOutcomes,
  type KindCounts,
} from './advantage/analysis/outcome-groups.js';
export { enlargesCosts, evensOutCosts, tellsTokensApart } from './advantage/analysis/tried-turns.js';
export {
  type Advantages,
  defineEstimator,
  type EstimatorDeclaration,
  type EstimatorState,
  type OpenEstimator,
} from './advantage/define-estimator.js';
export { estimateWith } from './advantage/estimate.js';
export { type Estimator as MethodEstimator, estimators, openEstimator, rivalOf } from './advantage/estimators/index.js';
export { filterGroups } from './advantage/filter.js';
export { type Groups, statisticsOf } from './advantage/groups.js';
export { predictedInflation } from './advantage/inflation.js';

export { ownShares } from './advantage/own-share.js';
export { TurnBatch } from './advantage/turn-batch.js';
