import type { TurnBatch } from './turn-batch.js';

/**
 * The discounted return from each turn's step on, one a turn: the sum over the episode's later steps of gamma^distance
 * times the step's reward. Each turn is its own step unless `envStep` is given. Turns that share a step share its
 * reward, which counts once. The token rewards of its turns are added. Linear except for a sort of the turns.
 * @param whose The rewards to use: the team's `stepReward`, over all steps, or the `agentStepReward` of the turn's
 *   agent, over the steps in which it acts
 * @throws ArgumentError with the turn that lacks the reward
 */
export function stepReturns(batch: TurnBatch, gamma: number, whose: 'team' | 'agent' = 'team'): Float64Array {
  const name = whose === 'team' ? 'stepReward' : 'agentStepReward';
  const rewards = batch.numbers(name, (turn) => turn[name]);
  const steps = batch.numbers('envStep', (turn) => turn.envStep ?? turn.turn);
  const { of } = whose === 'team' ? batch.episodes : batch.agentEpisodes;
  const { of: stepOf, count } = whose === 'team' ? batch.episodeSteps : batch.agentSteps;
  const ofTokens = new Float64Array(count); // [steps]
  batch.tokenSums.forEach((sum, i) => {
    ofTokens[stepOf[i] as number] = (ofTokens[stepOf[i] as number] as number) + sum;
  });
  const order = Uint32Array.from(of, (_, i) => i).sort(
    (a, b) => (of[a] as number) - (of[b] as number) || (steps[b] as number) - (steps[a] as number),
  );
  const returns = new Float64Array(order.length);
  order.forEach((turn, position) => {
    const later = order[position - 1];
    const goesOn = later !== undefined && of[later] === of[turn];
    if (goesOn && steps[later] === steps[turn]) returns[turn] = returns[later] as number;
    else
      returns[turn] =
        (rewards[turn] as number) +
        (ofTokens[stepOf[turn] as number] as number) +
        (goesOn ? gamma * (returns[later] as number) : 0);
  });
  return returns;
}
