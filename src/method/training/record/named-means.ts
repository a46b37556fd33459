/** Means of named numbers: the parts of the team's reward and of its agents' rewards, and the team's metrics. */

import type { AgentStep, Step } from '../../../base/events.js';
import { mean, meansByKey } from '../../../base/math.js';
import type { Episode } from '../../../base/nouns.js';

type NamedNumbers = Readonly<Record<string, number>>;

/** The means of the team's parts and metrics. Each field is absent if no episode has any. */
export function namedMeans(episodes: readonly Episode[]): Pick<Step, 'parts' | 'metrics'> {
  const parts = episodes.map(({ score }) => score.parts);
  const metrics = episodes.map(({ score }) => score.metrics ?? {});
  return { ...presentAs('parts', partMeans(parts)), ...presentAs('metrics', meansByKey(metrics)) };
}

/** The means of the parts of an agent's reward, over the episodes in which it has any. Absent if no episode has any. */
export function agentPartMeans(episodes: readonly Episode[], agent: string): Pick<AgentStep, 'parts'> {
  const parts = episodes.map(({ score }) => score.agentParts?.[agent]).filter((named) => named !== undefined);
  return presentAs('parts', partMeans(parts));
}

/** A missing part counts as 0, as in the reward, so that the means sum to the mean reward. */
function partMeans(parts: readonly NamedNumbers[]): NamedNumbers {
  const names = [...new Set(parts.flatMap(Object.keys))].sort();
  return Object.fromEntries(names.map((name) => [name, mean(parts.map((named) => named[name] ?? 0))]));
}

function presentAs<Key extends string>(key: Key, means: NamedNumbers): { readonly [K in Key]?: NamedNumbers } {
  return (Object.keys(means).length === 0 ? {} : { [key]: means }) as { readonly [K in Key]?: NamedNumbers };
}
