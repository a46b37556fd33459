/** Agents for clients of OpenAI's API in this process: the app of the gateway, called without a socket. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { UnattributedCallError } from '@drmas/engine/errors';
import { unlessAborted } from '@drmas/engine/host';
import { modelApp } from '../dialects/model-app.js';
import { type AgentAdapter, callsOfCaller, type EpisodeCalls } from './attribution.js';
import { promptTokens } from './gateway/prompt-tokens.js';

/** Arguments of `new OpenAI({ ... })` that connect a client to a team's agents in this process, without a socket. */
export interface OpenAIConnection {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly fetch: typeof fetch;
}

declare module '../../teams/team/agent-adapters.js' {
  interface EpisodeWays {
    /** All agents for clients of OpenAI's API: the model that a request names is the agent. */
    readonly openai: OpenAIConnection;
  }

  interface AgentWays {
    /**
     * The agent for clients of OpenAI's API. All requests go to this agent, for any model name; `model` is the agent's
     * name.
     */
    readonly openai: OpenAIConnection & { readonly model: string };
  }
}

interface Target {
  readonly calls: EpisodeCalls;
  /** The agent, if all requests are for the same one. */
  readonly agent?: string | undefined;
}

const targets = new AsyncLocalStorage<Target>();

const app = modelApp<Target>({
  authorise: ({ path }) => {
    const { calls, agent = path?.agent } = targets.getStore() ?? { calls: callsHere() };
    return { calls, agent };
  },
  countTokens: (request, { calls, agent = lastSegment(request.model) }) => promptTokens(calls, agent, request),
  models: ({ calls }) => calls.agents,
  recall: (id, { calls }) => calls.recall(id),
  complete: (request, { caller: { calls, agent = lastSegment(request.model) }, signal }) =>
    calls.complete(agent, request, signal),
});

/** Frameworks put a provider before a model's name. */
const lastSegment = (model: string) => model.slice(model.lastIndexOf('/') + 1);

function callsHere(): EpisodeCalls {
  const calls = callsOfCaller();
  if (calls === undefined) throw new UnattributedCallError('no episode is played: there is no agent to answer');
  return calls;
}

/**
 * A `fetch` for clients of OpenAI's API that are made before any episode, such as the clients of a graph that is
 * compiled once. It finds the episode at the time of the call, and the model that a request names is the agent. Errors
 * become replies with status 400 or 404, which clients do not retry. If the request's signal fires, it rejects with the
 * signal's reason, as `fetch` does.
 *
 * @example
 * ```ts
 * import { boundFetch } from 'drmas/agents';
 * import OpenAI from 'openai';
 *
 * const client = new OpenAI({ baseURL: 'http://drmas/v1', apiKey: 'drmas', fetch: boundFetch });
 * ```
 */
export const boundFetch: typeof fetch = async (input, init) => {
  const request = new Request(input, init);
  request.signal.throwIfAborted();
  return unlessAborted(Promise.resolve(app.fetch(request)), request.signal);
};

function connectionTo(calls: EpisodeCalls, agent?: string): OpenAIConnection {
  return {
    baseURL: 'http://drmas/v1', // this name is never looked up
    apiKey: 'drmas',
    fetch: (input, init) => targets.run({ calls, agent }, () => boundFetch(input, init)),
  };
}

export const openaiClients: AgentAdapter = {
  toAgent: { openai: (calls, name) => ({ ...connectionTo(calls, name), model: name }) },
  toEpisode: (calls) => ({ openai: connectionTo(calls) }),
};
