import type { z } from 'zod';
import type { TurnRecord } from '../../base/nouns.js';
import { type AgentCalls, agentCalls } from './analysis/agent-calls.js';
import type { Advantages, EstimatorDeclaration, EstimatorState, OpenEstimator } from './define-estimator.js';
import { type Estimator, estimators, openEstimator } from './estimators/index.js';
import { predictedInflation } from './inflation.js';
import { ownShares } from './own-share.js';
import { TurnBatch } from './turn-batch.js';

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
  const advantages = openEstimator(estimator as Estimator, [...estimators, ...(use ?? [])]).compute(
    new TurnBatch(turns),
  );
  const list = new Array<number | number[]>(turns.length);
  // A loop: `Array.from` of a typed array takes as long as the estimate itself.
  for (let i = 0; i < list.length; i++) list[i] = advantages[i] as number | number[];
  return list;
}

/** The advantages of a step of a run, with the estimator's other results that a trainer needs. */
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
  /** When each agent is called. */
  readonly calls: Readonly<Record<string, AgentCalls>>;
  /** The state for the next step. */
  readonly state: EstimatorState;
}

/**
 * Estimates the advantages of a step that begins with `state`.
 * @param state The state after the previous step; empty before the first step
 * @throws ArgumentError as `estimateAdvantages`
 */
export function estimateStep(
  turns: readonly TurnRecord[],
  estimator: Estimator | OpenEstimator,
  state: EstimatorState = {},
): StepEstimate {
  const batch = new TurnBatch(turns);
  const open = 'compute' in estimator ? estimator : openEstimator(estimator);
  return {
    advantages: open.compute(batch, state),
    returns: open.returns(batch),
    inflation: predictedInflation(batch, open),
    ownShare: ownShares(batch, open),
    calls: agentCalls(batch),
    state: open.advance(batch, state),
  };
}
