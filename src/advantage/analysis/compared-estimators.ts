import type { Traits } from '../define-estimator.js';
import { type Estimator, estimatorSchema, estimators } from '../estimators/index.js';

const compared = (when: Traits['compared']): readonly Estimator[] =>
  estimators.filter(({ traits }) => traits.compared === when).map(({ type }) => estimatorSchema.parse({ type }));

/**
 * The estimators that studies compare when nobody names any, with their defaults. They need nothing but rewards and
 * names.
 */
export const usualEstimators = compared('usually');

/** The estimators that can be computed for anybody's log, the usual ones first. */
export const comparableEstimators = [...usualEstimators, ...compared('on request')];
