/** The names of `drmas/advantages`: estimators, and one of your own. */
export type { TurnRecord } from '@drmas/engine/nouns';
export {
  type Advantages,
  defineEstimator,
  type EstimatorDeclaration,
  type EstimatorSchema,
  type EstimatorState,
  type Laws,
  type Moved,
  type OpenEstimator,
  type PenaltyUse,
  type Traits,
} from '../method/advantage/define-estimator.js';
export { filterGroups } from '../method/advantage/filter.js';
export type { Groups } from '../method/advantage/groups.js';
export type { Settings as EstimatorSettings } from '../method/advantage/named-choices.js';
export type { Pool, Rule, SharedPool } from '../method/advantage/normalise.js';
export type { TurnBatch } from '../method/advantage/turn-batch.js';
export type { Estimator } from '../runs/composition/estimate-advantages.js';
