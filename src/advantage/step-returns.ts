import type { TurnBatch } from './turn-batch.js';

/**
 * Discounted return from each turn's step on, one a turn: the sum over the episode's later steps of gamma^distance
 * times the step's reward. Every turn is another step unless `envStep` says otherwise; turns that share a step share
 * its reward, which counts once. Linear but for a sort of the turns.
 * @throws ArgumentError naming a turn without `stepReward`
 */
export function stepReturns(batch: TurnBatch, gamma: number): Float64Array {
  const rewards = batch.numbers('stepReward', (turn) => turn.stepReward);
  const steps = batch.numbers('envStep', (turn) => turn.envStep ?? turn.turn);
  const { of } = batch.episodes;
  const order = Uint32Array.from(of, (_, i) => i).sort(
    (a, b) => (of[a] as number) - (of[b] as number) || (steps[b] as number) - (steps[a] as number),
  );
  const returns = new Float64Array(order.length);
  order.forEach((turn, position) => {
    const later = order[position - 1];
    const sameEpisode = later !== undefined && of[later] === of[turn];
    if (sameEpisode && steps[later] === steps[turn]) returns[turn] = returns[later] as number;
    else returns[turn] = (rewards[turn] as number) + (sameEpisode ? gamma * (returns[later] as number) : 0);
  });
  return returns;
}
