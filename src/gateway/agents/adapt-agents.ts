/** The connections that an episode offers to code written for other frameworks. */
import { DialectError } from '../../base/errors.js';
import type { AgentWays, Ask } from '../../teams/index.js';
import type { AdaptedAgents, EpisodeInPlay, MeasurePrompt } from '../../teams/rollout.js';
import { adapters } from './adapters/index.js';
import { type EpisodeCalls, offer } from './attribution.js';
import { askOptions, foreignCall, recalled } from './foreign-call.js';
import type { OpenGateway } from './gateway/open-gateway.js';
import { noGateway } from './no-gateway.js';

/** The agents of an episode with all their connections; code of the episode also finds them by itself. */
export function adaptAgents(
  episode: EpisodeInPlay,
  asks: Readonly<Record<string, Ask>>,
  measure: MeasurePrompt,
  gateway?: OpenGateway,
): AdaptedAgents {
  const names = Object.keys(asks);
  const askNamed = (name: string): Ask => {
    const ask = Object.hasOwn(asks, name) ? asks[name] : undefined;
    if (ask !== undefined) return ask;
    throw new DialectError(404, 'model_not_found', `there is no agent '${name}'; the team has ${names.join(', ')}`);
  };
  const calls: EpisodeCalls = {
    agents: names,
    complete: async (name, request, signal) => foreignCall(episode, askNamed(name), request, signal),
    measure: (name, request) => {
      askNamed(name);
      episode.signal.throwIfAborted();
      return measure(name, request.messages, askOptions(request));
    },
    recall: (id) => recalled(episode, id),
  };
  offer(episode, calls);
  const agents = Object.entries(asks).map(([name, ask]) => {
    const ways = adapters.map(({ toAgent }) => toAgent(calls, name));
    return [name, Object.assign(ask, ...ways) as Ask & AgentWays] as const;
  });
  const overHttp = gateway === undefined ? noGateway : gateway.connect(episode, calls);
  const toAll = adapters.map(({ toEpisode }) => toEpisode?.(calls));
  return Object.assign({ agents: Object.fromEntries(agents), gateway: overHttp }, ...toAll) as AdaptedAgents;
}
