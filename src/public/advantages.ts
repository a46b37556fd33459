/** The names of `drmas/advantages`: estimators, and one of your own. */

export type { TurnRecord } from '../base/nouns.js';
export type {
  EstimatorSchema,
  Groups,
  Moved,
  Pool,
  Rule,
  Settings as EstimatorSettings,
  SharedPool,
  TurnBatch,
} from '../method/advantage.js';
export {
  type Advantages,
  defineEstimator,
  type EstimatorDeclaration,
  type EstimatorState,
  filterGroups,
  type Laws,
  type OpenEstimator,
  type PenaltyUse,
  type Traits,
} from '../method/advantage.js';
export { type Estimator, estimateAdvantages } from '../runs/composition.js';
