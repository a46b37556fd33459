import type { TurnRecord } from '@drmas/engine/nouns';
import { type AgentCalls, agentCalls } from './analysis/agent-calls.js';
import type { Advantages, EstimatorDeclaration, EstimatorState, OpenEstimator } from './define-estimator.js';
import { type Estimator, openEstimator } from './estimators/index.js';
import { predictedInflation } from './inflation.js';
import { ownShares } from './own-share.js';
import { TurnBatch } from './turn-batch.js';

/**
 * Advantages of the turns of one step, in the order of the turns: a number for all of a turn's tokens, or (token-level
 * estimators) an array with one number a token. Linear in the number of turns. The turns are not changed.
 * @param list The estimators that `estimator` may name
 * @throws ArgumentError with the turn whose reward (or another input of the estimator) is missing or not a finite
 *   number, or with the choice of the estimator that is out of range
 */
export function estimateWith(
  turns: readonly TurnRecord[],
  estimator: { readonly type: string },
  list: readonly EstimatorDeclaration[],
): (number | number[])[] {
  const advantages = openEstimator(estimator, list).compute(new TurnBatch(turns));
  const each = new Array<number | number[]>(turns.length);
  // A loop: `Array.from` of a typed array takes as long as the estimate itself.
  for (let i = 0; i < each.length; i++) each[i] = advantages[i] as number | number[];
  return each;
}

export interface StepEstimate {
  readonly advantages: Advantages;
  /** The critic's targets, one a token of every turn, for an estimator with a critic. */
  readonly returns: number[][] | undefined;
  /** The predicted inflation (Lemma 4.2) by agent. Agents without a group with enough spread are missing. */
  readonly inflation: Readonly<Record<string, number>>;
  /**
   * The share of each agent's squared shared scores that its own rewards explain. Agents with too few turns are
   * missing.
   */
  readonly ownShare: Readonly<Record<string, number>>;
  readonly calls: Readonly<Record<string, AgentCalls>>;
  readonly state: EstimatorState;
}

/**
 * @param state The state after the previous step; empty before the first step
 * @param others The outcomes of the step's episodes without a turn that trains
 * @throws ArgumentError as `estimateAdvantages`
 */
export function estimateStep(
  turns: readonly TurnRecord[],
  estimator: Estimator | OpenEstimator,
  state: EstimatorState = {},
  others: readonly number[] = [],
): StepEstimate {
  const batch = new TurnBatch(turns);
  const open = 'compute' in estimator ? estimator : openEstimator(estimator);
  return {
    advantages: open.compute(batch, state),
    returns: open.returns(batch),
    inflation: predictedInflation(batch, open),
    ownShare: ownShares(batch, open),
    calls: agentCalls(batch, others),
    state: open.advance(batch, state),
  };
}
