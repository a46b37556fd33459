/** The connections that an episode offers to code written for other frameworks. */
import { DialectError, ownValue } from '@drmas/engine/errors';
import type { AgentWays, Ask } from '../../teams/index.js';
import type { AdaptedAgents, EpisodeInPlay, TokenCounts } from '../../teams/rollout.js';
import type { ModelAnswer, ModelRequest, Said } from '../dialects/dialect.js';
import { adapters } from './adapters/index.js';
import { type EpisodeCalls, offer } from './attribution.js';
import { askOptions, foreignCall, recalled } from './foreign-call.js';
import type { OpenGateway } from './gateway/open-gateway.js';
import { noGateway } from './no-gateway.js';

/** The agents of an episode with all their connections; code of the episode also finds them by itself. */
export function adaptAgents(
  episode: EpisodeInPlay,
  asks: Readonly<Record<string, Ask>>,
  counts: TokenCounts,
  gateway?: OpenGateway,
): AdaptedAgents {
  const calls = new CallsOfEpisode(episode, asks, counts);
  offer(episode, calls);
  const agents: Record<string, Ask & AgentWays> = {};
  for (const [name, ask] of Object.entries(asks)) agents[name] = connected(ask, { calls, name, connections: {} });
  const overHttp = gateway === undefined ? noGateway : gateway.connect(episode, calls);
  const toAll = adapters.map(({ toEpisode }) => toEpisode?.(calls));
  return Object.assign({ agents, gateway: overHttp }, ...toAll) as AdaptedAgents;
}

class CallsOfEpisode implements EpisodeCalls {
  readonly #episode: EpisodeInPlay;
  readonly #asks: Readonly<Record<string, Ask>>;
  readonly #counts: TokenCounts;

  constructor(episode: EpisodeInPlay, asks: Readonly<Record<string, Ask>>, counts: TokenCounts) {
    this.#episode = episode;
    this.#asks = asks;
    this.#counts = counts;
  }

  get agents(): readonly string[] {
    return Object.keys(this.#asks);
  }

  async complete(agent: string, request: ModelRequest, signal: AbortSignal | undefined): Promise<ModelAnswer> {
    try {
      return await foreignCall(this.#episode, this.#ask(agent), this.#counts, request, signal);
    } catch (error) {
      if (request.probe !== true) this.noteRefusal(error);
      throw error;
    }
  }

  measure(agent: string, request: ModelRequest): number | undefined {
    this.#ask(agent);
    this.#episode.signal.throwIfAborted();
    return this.#counts.ofPrompt(agent, request.messages, askOptions(request));
  }

  recall(id: string): Said | undefined {
    return recalled(this.#episode, id);
  }

  noteRefusal(error: unknown): void {
    this.#episode.noteRefusal(error);
  }

  #ask(name: string): Ask {
    const ask = ownValue(this.#asks, name);
    if (ask !== undefined) return ask;
    const names = this.agents.join(', ');
    throw new DialectError(404, 'model_not_found', `there is no agent '${name}'; the team has ${names}`);
  }
}

const CONNECTION = Symbol('the episode and the name of an agent');

/** An agent that makes its connections when code reads them: a team uses one of them, or none. */
interface Connected {
  readonly [CONNECTION]: {
    readonly calls: EpisodeCalls;
    readonly name: string;
    readonly connections: Record<string, unknown>;
  };
}

/** The connections as properties. All agents share them, which keeps an agent small. */
const ways: PropertyDescriptorMap = Object.fromEntries(
  adapters.flatMap(({ toAgent }) =>
    Object.entries(toAgent).map(([way, make]) => {
      const get = function (this: Connected): unknown {
        const { calls, name, connections } = this[CONNECTION];
        connections[way] ??= make(calls, name);
        return connections[way];
      };
      return [way, { get, enumerable: true }];
    }),
  ),
);

function connected(ask: Ask, connection: Connected[typeof CONNECTION]): Ask & AgentWays {
  Object.defineProperty(ask, CONNECTION, { value: connection });
  return Object.defineProperties(ask, ways) as Ask & AgentWays;
}
