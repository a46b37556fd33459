import type { TurnRecord } from '@drmas/engine/nouns';
import type { z } from 'zod';
import type { labEstimators } from '../../lab/index.js';
import { type EstimatorDeclaration, estimateWith, type MethodEstimator } from '../../method/advantage.js';
import { standard } from './standard.js';

/** An estimator: its `type` and its choices. Omitted choices get their defaults. */
export type Estimator = MethodEstimator | z.input<(typeof labEstimators)[number]['schema']>;

/**
 * Advantages of the turns of one step, in the order of the turns: a number for all of a turn's tokens, or (token-level
 * estimators) an array with one number a token. Linear in the number of turns. The turns are not changed.
 * @param use Own estimators, as `defineEstimator` returns them, which `estimator` may name
 * @throws ArgumentError with the turn whose reward (or another input of the estimator) is missing or not a finite
 *   number, or with the choice of the estimator that is out of range
 *
 * @example
 * ```ts
 * import { estimateAdvantages } from 'drmas';
 *
 * const turns = [
 *   { task: 't', episode: '0', agent: 'solver', turn: 0, reward: 1 },
 *   { task: 't', episode: '1', agent: 'solver', turn: 0, reward: 0 },
 * ];
 * estimateAdvantages(turns, { type: 'dr-grpo' }); // [0.5, -0.5]
 * ```
 */
export function estimateAdvantages<const Use extends readonly EstimatorDeclaration[] = readonly []>(
  turns: readonly TurnRecord[],
  estimator: Estimator | z.input<Use[number]['schema']>,
  use?: Use,
): (number | number[])[] {
  return estimateWith(turns, estimator as { readonly type: string }, [...standard.estimators, ...(use ?? [])]);
}
