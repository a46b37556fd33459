import { within } from '../groups.js';
import type { TurnBatch } from '../turn-batch.js';

/** When an agent is called: how often, and how the episodes go in which it is. */
export interface AgentCalls {
  /** The share of the episodes in which it is called. */
  readonly share: number;
  /** The mean outcome of those episodes; in episodes of success and failure, the share that succeeds. */
  readonly success: number;
  /** The mean outcome of all episodes. */
  readonly overall: number;
}

/**
 * The calls of every agent of a batch. The outcome of an episode is that of its turns, or the mean of their rewards
 * where not every turn knows one.
 */
export function agentCalls(batch: TurnBatch): Record<string, AgentCalls> {
  const { agents, episodes, turns } = batch;
  const outcomes = batch.episodeScores(turns.every(({ outcome }) => outcome !== undefined) ? 'outcome' : 'mean');
  const overall = outcomes.reduce((sum, outcome) => sum + outcome, 0) / outcomes.length;
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
  return batch.byAgent((k) => ({
    share: (counts[k] as number) / episodes.count,
    success: (sums[k] as number) / (counts[k] as number),
    overall,
  }));
}
