/** Tokens, cost and time of a run, from its log. */

import { evaluatedEpisodes } from '../evaluation.js';
import type { EvaluationEvent, RunEvent, RunStarted, Step, Warmup } from '../events.js';
import { type Spending, spentTogether, type TokenCount } from './token-count.js';

/** Tokens, cost and time of a run so far, without the warm start. */
export interface RunSpending extends Spending {
  readonly agents: Readonly<Record<string, Spending>>;
  /** Episodes of steps and evaluations, those that steps play as baselines included. */
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
    episodes += event.type === 'step' ? playedEpisodes(event) : evaluatedEpisodes(event);
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

/** All episodes whose tokens a step counts. */
export const playedEpisodes = ({ episodes, baseline }: Pick<Step, 'episodes' | 'baseline'>): number =>
  (episodes?.played ?? 0) + (baseline?.episodes ?? 0);

// The cost of training a team, from the log of a run, so that a warm start and reinforcement can be compared.

/** The tokens of a run's warm start and of its steps; tokens of evaluations do not count. */
export interface TrainingBudget extends TokenCount {
  /** Tokens of demonstrations, trained in this run or read from the cache of warm starts. */
  readonly demonstrated: number;
  /**
   * Floating-point operations of playing and training: 2 a parameter for each token that is read or written, 6 for each
   * token that is trained (Kaplan et al. 2020, arXiv 2001.08361, table 1), without attention over the context. Absent
   * if the size of a model that plays is not known.
   */
  readonly operations?: number;
}

/**
 * The cost of a run's training; undefined if its log has no token counts.
 *
 * @param policies The policy of each agent. Give only agents whose models are trained whole: the log does not tell the
 *   parameters of an adapter's base
 */
export function trainingBudget(
  events: readonly (RunEvent | RunStarted | Warmup | Step)[],
  policies: Readonly<Record<string, string>>,
): TrainingBudget | undefined {
  const sizes = events.find((event) => event.type === 'run.started')?.parameters ?? {};
  const steps = events.filter((event) => event.type === 'step');
  const warmups = events.filter((event) => event.type === 'warmup');
  const spent = steps.flatMap(({ agents }) =>
    Object.entries(agents).flatMap(([agent, { tokens }]) => (tokens === undefined ? [] : [{ agent, tokens }])),
  );
  if (warmups.length === 0 && spent.length === 0) return undefined;
  const sizeOf = (policy: string | undefined) => (policy === undefined ? undefined : sizes[policy]);
  const [first] = Object.values(sizes); // a base is copied into every policy, so all have its size
  const operations = [
    ...warmups.map(({ policy, tokens }) => 6 * tokens * (sizeOf(policy) ?? first ?? Number.NaN)),
    ...spent.map(
      ({ agent, tokens: { read, written, trained } }) =>
        (2 * (read + written) + 6 * trained) * (sizeOf(policies[agent]) ?? Number.NaN),
    ),
  ].reduce((sum, some) => sum + some, 0);
  return {
    ...spentTogether(spent).tokens,
    demonstrated: warmups.reduce((sum, { tokens }) => sum + tokens, 0),
    ...(Number.isNaN(operations) ? {} : { operations }),
  };
}
