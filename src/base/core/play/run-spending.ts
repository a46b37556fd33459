/** Tokens, cost and time of a run, from its log. */
import type { EvaluationEvent, RunEvent, Step } from '../events.js';
import { type Spending, spentTogether } from './token-count.js';

/** Tokens, cost and time of a run so far, without the warm start. */
export interface RunSpending extends Spending {
  readonly agents: Readonly<Record<string, Spending>>;
  /** Episodes of steps and evaluations. */
  readonly episodes: number;
  /** Seconds of steps and evaluations. */
  readonly seconds: number;
  /** Tokens that went through updates: equal rows count once, rows without an advantage not at all. */
  readonly updated: number;
}

/** Sums over the steps and evaluations of a log; undefined if an older version wrote it without tokens. */
export function runSpending(events: readonly (RunEvent | Step | EvaluationEvent)[]): RunSpending | undefined {
  const agents = new Map<string, Spending[]>();
  let [episodes, seconds, updated] = [0, 0, 0];
  for (const event of events) {
    if (event.type !== 'step' && event.type !== 'evaluation') continue;
    episodes += event.type === 'step' ? (event.episodes?.played ?? 0) : event.tasks * event.samples;
    seconds += event.seconds;
    if (event.type === 'step') updated += event.tokens.trained;
    for (const [agent, { tokens, cost }] of Object.entries(event.agents))
      if (tokens !== undefined)
        agents.set(agent, [...(agents.get(agent) ?? []), cost === undefined ? { tokens } : { tokens, cost }]);
  }
  if (agents.size === 0) return undefined;
  const byAgent = Object.fromEntries([...agents].sort().map(([agent, all]) => [agent, spentTogether(all)]));
  return { ...spentTogether(Object.values(byAgent)), agents: byAgent, episodes, seconds, updated };
}
