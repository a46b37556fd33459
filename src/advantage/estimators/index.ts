/** Every estimator; a new one is a file and a row here. */
import { z } from 'zod';
import { ArgumentError } from '../../core/errors.js';
import type { EstimatorDeclaration, Need, OpenEstimator } from '../define-estimator.js';
import { advantageAlignment } from './advantage-alignment.js';
import { atGrpo } from './by-group/at-grpo.js';
import { drGrpo } from './by-group/dr-grpo.js';
import { drmas } from './by-group/drmas.js';
import { drmasBatch } from './by-group/drmas-batch.js';
import { drmasEpisode } from './by-group/drmas-episode.js';
import { drmasMean } from './by-group/drmas-mean.js';
import { drmasStd } from './by-group/drmas-std.js';
import { grpo } from './by-group/grpo.js';
import { grpoTurn } from './by-group/grpo-turn.js';
import { partition } from './by-group/partition.js';
import { reinforcePlusPlusBaseline } from './by-group/reinforce-plus-plus-baseline.js';
import { rloo } from './by-group/rloo.js';
import { gae } from './by-token/gae.js';
import { reinforcePlusPlus } from './by-token/reinforce-plus-plus.js';
import { remax } from './by-token/remax.js';
import { counterfactual } from './counterfactual.js';
import { ema } from './ema.js';
import { gigpo } from './gigpo.js';
import { grpoPassK } from './grpo-passk.js';
import { magrpo } from './magrpo.js';
import { rejection } from './rejection.js';

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
  partition,
  rloo,
  reinforcePlusPlusBaseline,
  atGrpo,
  magrpo,
  grpoPassK,
  gigpo,
  rejection,
  reinforcePlusPlus,
  remax,
  counterfactual,
  gae,
  ema,
  advantageAlignment,
] as const;

type Declared = (typeof list)[number];

/** An estimator by its `type` with its choices; those that are left out get their defaults. */
export type Estimator = z.input<Declared['schema']>;

/** Every declared estimator. */
export const estimators: readonly EstimatorDeclaration<Estimator['type']>[] = list;

/** The estimator of a recipe that names none. */
export const DEFAULT_ESTIMATOR = drmas.type;

/** A recipe's `advantage`, told apart by `type`. */
export const estimatorSchema = z.discriminatedUnion(
  'type',
  // `map` forgets that the list has a first element.
  list.map(({ schema }) => schema) as unknown as [Declared['schema']],
);

/** @throws ArgumentError for an unknown type */
export function declarationOf({ type }: Pick<Estimator, 'type'>): EstimatorDeclaration<Estimator['type']> {
  const declaration = estimators.find((one) => one.type === type);
  if (declaration !== undefined) return declaration;
  const types = estimators.map((one) => one.type).join(', ');
  throw new ArgumentError(`advantage.type must be one of ${types}, got ${JSON.stringify(type)}`);
}

/** Makes an estimator's choices. @throws ArgumentError for an unknown type or a choice out of range */
export function openEstimator(estimator: Estimator): OpenEstimator {
  return declarationOf(estimator).open(estimator);
}

/** The estimator that a run with this one is to be compared with first. @throws ArgumentError for an unknown type */
export function rivalOf(estimator: Pick<Estimator, 'type'>): string {
  return declarationOf(estimator).traits.rival ?? DEFAULT_ESTIMATOR;
}

/**
 * What the estimator needs that playing does not tell.
 * @throws ArgumentError for an unknown type
 */
export function needOf(estimator: Pick<Estimator, 'type'>): Need | undefined {
  return declarationOf(estimator).traits.needs;
}

/** How often the estimator wants each turn to be played again from its context on; 0 where it does not. */
export function alternativesOf(estimator: Estimator): number {
  return 'alternatives' in estimator ? (estimator.alternatives ?? 1) : 0;
}
