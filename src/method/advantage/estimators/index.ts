/** Every estimator of the method; `src/lab` has others. A new estimator is one file and one row here. */

import { ArgumentError } from '@drmas/engine/errors';
import { z } from 'zod';
import type { EstimatorDeclaration, OpenEstimator } from '../define-estimator.js';
import { advantageAlignment } from './advantage-alignment.js';
import { atGrpo } from './by-group/at-grpo.js';
import { drGrpo } from './by-group/dr-grpo.js';
import { drmas } from './by-group/drmas.js';
import { grpo } from './by-group/grpo.js';
import { partition } from './by-group/partition.js';
import { drmasBatch, drmasEpisode, drmasMean, drmasStd, grpoTurn } from './by-group/partition-points.js';
import { reinforcePlusPlusBaseline } from './by-group/reinforce-plus-plus-baseline.js';
import { rloo } from './by-group/rloo.js';
import { gae } from './by-token/gae.js';
import { reinforcePlusPlus } from './by-token/reinforce-plus-plus.js';
import { remax } from './by-token/remax.js';
import { ema } from './ema.js';
import { gdpo } from './gdpo.js';
import { gigpo } from './gigpo.js';
import { grpoPassK } from './grpo-passk.js';
import { hierarchicalGrpo } from './hierarchical-grpo.js';
import { magrpo } from './magrpo.js';
import { maxRl } from './maxrl.js';
import { rejection } from './rejection.js';
import { shrinkage } from './shrinkage.js';

/** The list of all estimators, in the order of messages and tables. */
const list = [
  grpo,
  drGrpo,
  drmas,
  grpoTurn,
  drmasMean,
  drmasStd,
  drmasEpisode,
  drmasBatch,
  shrinkage,
  partition,
  rloo,
  reinforcePlusPlusBaseline,
  atGrpo,
  magrpo,
  hierarchicalGrpo,
  grpoPassK,
  maxRl,
  gdpo,
  gigpo,
  rejection,
  reinforcePlusPlus,
  remax,
  gae,
  ema,
  advantageAlignment,
] as const;

type StandardEstimator = (typeof list)[number];

/** An estimator: its `type` and its choices. Omitted choices get their defaults. */
export type Estimator = z.input<StandardEstimator['schema']>;

export const estimators: readonly EstimatorDeclaration<Estimator['type']>[] = list;

export const DEFAULT_ESTIMATOR = drmas.type;

export const estimatorSchema = z.discriminatedUnion(
  'type',
  // `map` loses the type fact that the list has a first element.
  list.map(({ schema }) => schema) as unknown as [StandardEstimator['schema']],
);

/**
 * @param list The estimators to search, such as a recipe's with its plug-ins
 * @throws ArgumentError for an unknown type
 */
export function declarationOf(
  { type }: { readonly type: string },
  list: readonly EstimatorDeclaration[] = estimators,
): EstimatorDeclaration {
  const declaration = list.find((one) => one.type === type);
  if (declaration !== undefined) return declaration;
  const types = list.map((one) => one.type).join(', ');
  throw new ArgumentError(`advantage.type must be one of ${types}, got ${JSON.stringify(type)}`);
}

/**
 * Completes an estimator's choices with their defaults.
 * @param list As for `declarationOf`
 * @throws ArgumentError for an unknown type or a choice out of range
 */
export function openEstimator(
  estimator: { readonly type: string },
  list: readonly EstimatorDeclaration[] = estimators,
): OpenEstimator {
  return declarationOf(estimator, list).open(estimator);
}

/**
 * The estimator to compare a run of this one with first.
 * @param list As for `declarationOf`
 * @throws ArgumentError for an unknown type
 */
export function rivalOf(estimator: { readonly type: string }, list?: readonly EstimatorDeclaration[]): string {
  return declarationOf(estimator, list).traits.rival ?? DEFAULT_ESTIMATOR;
}

/**
 * The name of the signal that the estimator needs; undefined if it needs none.
 * @param list As for `declarationOf`
 * @throws ArgumentError for an unknown type
 */
export function needOf(
  estimator: { readonly type: string },
  list?: readonly EstimatorDeclaration[],
): string | undefined {
  return declarationOf(estimator, list).traits.needs;
}
