import type { AgentStep } from '@drmas/engine/events';
import { mean } from '@drmas/engine/math';
import { parentsOf, statisticsOf, within } from '../groups.js';
import type { TurnBatch } from '../turn-batch.js';

/** An agent that acts once in a task has no turn of its own there to be compared with. */
export type AgentCalls = Required<NonNullable<AgentStep['calls']>>;

/**
 * The calls of every agent of a batch. The outcome of an episode is the outcome of its turns. If a turn has no outcome,
 * it is the mean of the turns' rewards.
 * @param others The outcomes of the episodes without a turn in the batch, in which only frozen agents acted
 */
export function agentCalls(batch: TurnBatch, others: readonly number[] = []): Record<string, AgentCalls> {
  const { agents, episodes, turns } = batch;
  const outcomes = batch.episodeScores(turns.every(({ outcome }) => outcome !== undefined) ? 'outcome' : 'mean');
  const overall = mean([...outcomes, ...others]);
  const called = within(agents, episodes);
  const counts = new Float64Array(agents.count);
  const sums = new Float64Array(agents.count);
  let next = 0;
  for (let i = 0; i < turns.length; i++) {
    if (called.of[i] !== next) continue; // groups are numbered by first appearance: a later turn of a pair
    next++;
    const k = agents.of[i] as number;
    counts[k] = (counts[k] as number) + 1;
    sums[k] = (sums[k] as number) + (outcomes[episodes.of[i] as number] as number);
  }
  const alone = aloneShares(batch);
  return batch.byAgent((k) => ({
    share: (counts[k] as number) / (episodes.count + others.length),
    success: (sums[k] as number) / (counts[k] as number),
    overall,
    alone: alone[k] as number,
  }));
}

function aloneShares({ agents, taskAgents, rewards }: TurnBatch): Float64Array {
  const single = Float64Array.from(statisticsOf(taskAgents, rewards).size, (turns) => Number(turns === 1));
  return statisticsOf(parentsOf(taskAgents, agents), single).mean;
}
