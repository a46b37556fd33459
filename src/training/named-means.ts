/** The means of what a team names: the parts of its reward and of its agents' rewards, and its metrics. */
import type { Episode } from '../core/episode.js';
import type { AgentStep, Step } from '../core/events.js';
import { mean, meansByKey } from '../core/statistics.js';

type Named = Readonly<Record<string, number>>;

/** The means of the team's parts and metrics; each is absent where no episode has any. */
export function namedMeans(episodes: readonly Episode[]): Pick<Step, 'parts' | 'metrics'> {
  const parts = episodes.map(({ score }) => score.parts);
  const metrics = episodes.map(({ score }) => score.metrics ?? {});
  return { ...presentAs('parts', partMeans(parts)), ...presentAs('metrics', meansByKey(metrics)) };
}

/** The means of the parts of an agent's reward, over the episodes in which it has any; absent where there is none. */
export function agentPartMeans(episodes: readonly Episode[], agent: string): Pick<AgentStep, 'parts'> {
  const parts = episodes.map(({ score }) => score.agentParts?.[agent]).filter((named) => named !== undefined);
  return presentAs('parts', partMeans(parts));
}

/** A missing part counts 0, as it does in the reward, so that the means sum to the mean reward. */
function partMeans(parts: readonly Named[]): Named {
  const names = [...new Set(parts.flatMap(Object.keys))].sort();
  return Object.fromEntries(names.map((name) => [name, mean(parts.map((named) => named[name] ?? 0))]));
}

function presentAs<Key extends string>(key: Key, means: Named): { readonly [K in Key]?: Named } {
  return (Object.keys(means).length === 0 ? {} : { [key]: means }) as { readonly [K in Key]?: Named };
}
