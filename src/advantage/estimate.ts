import type { TurnRecord } from '../core/advantage.js';
import { type AgentCalls, agentCalls } from './analysis/agent-calls.js';
import type { Advantages, EstimatorState } from './define-estimator.js';
import { type Estimator, openEstimator } from './estimators/index.js';
import { predictedInflation } from './inflation.js';
import { ownShares } from './own-share.js';
import { TurnBatch } from './turn-batch.js';

/**
 * Advantages of the turns of one step, in the order of the turns: a number for all of a turn's tokens, or (token-level
 * estimators) an array with one number a token. Linear in the number of turns; the turns are left as they are.
 * @throws ArgumentError naming the turn whose reward (or whatever else the estimator needs) is missing or not a finite
 *   number, or the choice of the estimator that is out of range
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
export function estimateAdvantages(turns: readonly TurnRecord[], estimator: Estimator): (number | number[])[] {
  const advantages = openEstimator(estimator).compute(new TurnBatch(turns));
  const list = new Array<number | number[]>(turns.length);
  // A loop: `Array.from` of a typed array takes as long as the estimate itself.
  for (let i = 0; i < list.length; i++) list[i] = advantages[i] as number | number[];
  return list;
}

/** The advantages of a step of a run, with what else a trainer needs of the estimator. */
export interface StepEstimate {
  readonly advantages: Advantages;
  /** The targets of a critic, one a token of every turn, for an estimator that uses one. */
  readonly returns: number[][] | undefined;
  /** Lemma 4.2 by agent; agents without a group to judge by are missing. */
  readonly inflation: Readonly<Record<string, number>>;
  /** How much of each agent's shared scores follows its own rewards; agents with too few turns are missing. */
  readonly ownShare: Readonly<Record<string, number>>;
  /** When each agent is called. */
  readonly calls: Readonly<Record<string, AgentCalls>>;
  /** The state that the next step begins with. */
  readonly state: EstimatorState;
}

/**
 * Estimates the advantages of a step that begins with `state`.
 * @param state The state that the step before ended with; empty before the first step
 * @throws ArgumentError as `estimateAdvantages`
 */
export function estimateStep(
  turns: readonly TurnRecord[],
  estimator: Estimator,
  state: EstimatorState = {},
): StepEstimate {
  const batch = new TurnBatch(turns);
  const open = openEstimator(estimator);
  return {
    advantages: open.compute(batch, state),
    returns: open.returns(batch),
    inflation: predictedInflation(batch, open),
    ownShare: ownShares(batch, open),
    calls: agentCalls(batch),
    state: open.advance(batch, state),
  };
}
