import type { Batch } from '../batch.js';
import type { Estimator } from '../estimator.js';
import { comparisonOf, measure, type Settings } from '../partition.js';
import { stepReturns } from '../returns.js';

/**
 * MAGRPO (Liu et al. 2025, arXiv 2508.04652): the team's return from a joint turn on, R_t = r_t + gamma R_t+1, against its mean
 * over the task's episodes at that turn; all agents of the turn get it, nothing is divided. A joint turn is a turn index, or
 * the turns that share an `envStep`. Turns without `stepReward` earn with the episode's end, so that R_t is their `reward`.
 * @throws ArgumentError naming a turn without `stepReward` where others have one, or gamma is not 1
 */
export function magrpo(
  batch: Batch,
  { gamma = 1 }: Extract<Estimator, { type: 'magrpo' }>,
  settings: Settings,
): Float64Array {
  const atTheEnd = gamma === 1 && batch.turns.every(({ stepReward }) => stepReward === undefined);
  const returns = atTheEnd ? batch.rewards : stepReturns(batch, gamma);
  const members = batch.taskSteps;
  const turns = { turns: members.of, members, values: returns, wider: batch.all };
  return measure(returns, { mean: comparisonOf(turns, settings.singleton), spread: undefined }, settings);
}
