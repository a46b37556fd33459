/** Recorders: each writes a part of a step's event. */

import { ownValue } from '@drmas/engine/errors';
import type { AgentStep, Step } from '@drmas/engine/events';
import type { Spending } from '@drmas/engine/host';
import { mean, meansByKey } from '@drmas/engine/math';
import type { Episode, Turn } from '@drmas/engine/nouns';
import type { CostOfCalls } from '../../../teams/rollout.js';
import type { AdvantageSizes } from '../../advantage/analysis/advantage-sizes.js';
import type { AgentRewards } from '../../advantage/analysis/agent-rewards.js';
import type { Played } from '../play/played.js';
import type { PlayedTurn } from '../stability/agent-health.js';
import type { Learnt } from '../update/update-policies.js';
import type { AgentUpdate } from '../update/update-result.js';

export interface RecordedStep {
  readonly played: Played;
  readonly learnt: Learnt;
  /** The episodes after the rule about failed episodes. */
  readonly episodes: readonly Episode[];
  readonly spending: Readonly<Record<string, Spending>>;
  readonly costOf: CostOfCalls;
  readonly chains: Readonly<Record<string, NonNullable<AgentStep['chains']>>>;
  readonly agents: Readonly<Record<string, AgentStep>>;
}

export interface RecordedAgent extends Omit<RecordedStep, 'agents'> {
  readonly agent: string;
  /** Its turns in the episodes after the rule about failed episodes. */
  readonly turns: readonly PlayedTurn[];
  /** All of its turns, also in failed episodes, whose texts are measured. */
  readonly written: readonly Turn[];
  /** Of `turns`; undefined, as `sizes` is, if there are none. */
  readonly rewards: AgentRewards | undefined;
  readonly sizes: AdvantageSizes | undefined;
  /** The most tokens of its model; undefined if it does not learn. */
  readonly context: number | undefined;
  readonly update: AgentUpdate | undefined;
}

export type StepRecorder = (step: RecordedStep) => Partial<Step>;

/** Writes a part of an agent's measurements. `before` has the parts of the recorders before it. */
export type AgentRecorder = (agent: RecordedAgent, before: Partial<AgentStep>) => Partial<AgentStep>;

export function recordAll<Subject, Part extends object>(
  recorders: Readonly<Record<string, (subject: Subject, before: Partial<Part>) => Partial<Part>>>,
  subject: Subject,
): Partial<Part> {
  const all: Partial<Part> = {};
  for (const record of Object.values(recorders)) Object.assign(all, record(subject, all));
  return all;
}

type NamedNumbers = Readonly<Record<string, number>>;

/**
 * The means of the team's parts and metrics. Each field is absent if no episode has any.
 * @param groups The episodes of each unit that counts once in the mean reward: the tasks of an evaluation, or all
 *   episodes of a step together. So the means of parts sum to the mean reward.
 */
export function namedMeans(groups: readonly (readonly Episode[])[]): Pick<Step, 'parts' | 'metrics'> {
  const parts = groups.map((episodes) => episodes.map(({ score }) => score.parts));
  const metrics = groups.flat().map(({ score }) => score.metrics ?? {});
  return { ...presentAs('parts', partMeans(parts)), ...presentAs('metrics', meansByKey(metrics)) };
}

/**
 * The means of the parts of an agent's reward, over the episodes in which it has any, and over the failed ones, in
 * which it earns nothing for them. Absent if no episode has any.
 * @param groups As for `namedMeans`
 */
export function agentPartMeans(groups: readonly (readonly Episode[])[], agent: string): Pick<AgentStep, 'parts'> {
  const parts = groups.map((episodes) =>
    episodes
      .map(({ failure, score }) => (failure === undefined ? score.agentParts?.[agent] : {}))
      .filter((named) => named !== undefined),
  );
  return presentAs('parts', partMeans(parts));
}

/** A missing part counts as 0, as in the reward. */
function partMeans(groups: readonly (readonly NamedNumbers[])[]): NamedNumbers {
  const named = groups.filter(({ length }) => length > 0);
  const names = [...new Set(named.flat().flatMap(Object.keys))].sort();
  return Object.fromEntries(
    names.map((name) => [name, mean(named.map((parts) => mean(parts.map((of) => ownValue(of, name) ?? 0))))]),
  );
}

function presentAs<Key extends string>(key: Key, means: NamedNumbers): { readonly [K in Key]?: NamedNumbers } {
  return (Object.keys(means).length === 0 ? {} : { [key]: means }) as { readonly [K in Key]?: NamedNumbers };
}
