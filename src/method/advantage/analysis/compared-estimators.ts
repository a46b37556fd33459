import type { Traits } from '../define-estimator.js';
import { type Estimator, estimatorSchema, estimators } from '../estimators/index.js';

const compared = (when: Traits['compared']): readonly Estimator[] =>
  estimators.filter(({ traits }) => traits.compared === when).map(({ type }) => estimatorSchema.parse({ type }));

/**
 * The estimators that studies compare by default, with their default settings. They need only rewards and names.
 */
export const usualEstimators = compared('usually');

export const comparableEstimators = [...usualEstimators, ...compared('on request')];
