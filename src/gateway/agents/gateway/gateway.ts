/** A run's agents for programs in any language: the app of the dialects on a port, with a secret for every episode. */

import { ArgumentError, DialectError } from '@drmas/engine/errors';
import { onAbort } from '@drmas/engine/host';
import { type GuardedApp, guardOf } from '@drmas/engine/platform';
import type { Hono } from 'hono';
import type { GatewayConnection } from '../../../teams/index.js';
import type { EpisodeInPlay } from '../../../teams/rollout.js';
import type { ModelRequest } from '../../dialects/dialect.js';
import { modelApp, modelPolicy } from '../../dialects/model-app.js';
import type { EpisodeCalls } from '../attribution.js';
import { type CallLimits, EpisodeRequests } from './episode-requests.js';
import { EpisodeSecrets } from './episode-secrets.js';

export interface GatewayOptions {
  readonly limits: CallLimits;
  /** Receives the settings of a request that the recipe decides. */
  readonly onIgnored: (agent: string, settings: readonly string[]) => void;
}

interface Caller {
  readonly requests: EpisodeRequests;
  readonly agent: string | undefined;
}

/** The episodes that are played, behind one app. */
export class Gateway {
  readonly app: Hono;
  readonly guard: GuardedApp['guard'];
  readonly refuse = modelPolicy.refuse;
  readonly #options: GatewayOptions;
  readonly #secrets = new EpisodeSecrets();
  readonly #requests = new Map<string, EpisodeRequests>();
  #episodes = 0;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.guard = guardOf({ access: { type: 'secrets' }, ...modelPolicy });
    this.app = modelApp<Caller>({
      authorise: ({ secrets, path }) => this.#callerOf(secrets, path),
      models: ({ requests }) => requests.agents,
      recall: (id, { requests }) => requests.recall(id),
      complete: (request, call) => {
        const agent = agentOf(request, call.caller);
        if (request.ignored.length > 0) options.onIgnored(agent, request.ignored);
        return call.caller.requests.complete(agent, request, call);
      },
      countTokens: (request, caller) => caller.requests.countTokens(agentOf(request, caller), request),
    });
  }

  /** Connects an episode's agents until the episode is over. @param url the address of the app */
  connect(episode: EpisodeInPlay, calls: EpisodeCalls, url: string): GatewayConnection {
    const id = (this.#episodes++).toString(36);
    const { limits } = this.#options;
    this.#requests.set(id, new EpisodeRequests({ episode, calls, limits }));
    onAbort(episode.signal, () => this.#requests.delete(id));
    const secret = this.#secrets.secretOf(id);
    const urlOf = (agent: string) => {
      if (!calls.agents.includes(agent))
        throw new ArgumentError(`gateway: there is no agent '${agent}'; the team has ${calls.agents.join(', ')}`);
      return `${url}/e/${id}/a/${agent}`;
    };
    const envOf = (agent: string) => environment(urlOf(agent), secret);
    return { url, secret, urlOf, env: environment(url, secret), envOf };
  }

  /** The secret identifies the caller; a path that contradicts it is ignored. */
  #callerOf(secrets: readonly string[], path: { episode: string; agent: string } | undefined): Caller {
    const [id] = secrets.map((secret) => this.#secrets.episodeOf(secret)).filter((episode) => episode !== undefined);
    if (id === undefined)
      throw new DialectError(401, 'unknown_secret', 'expected the secret of an episode as a bearer or as x-api-key');
    const requests = this.#requests.get(id);
    if (requests === undefined) throw new DialectError(400, 'episode_over', 'the episode is over');
    const agent = path?.episode === id ? path.agent : undefined;
    return { requests, agent: agent === undefined ? undefined : known(agent, requests) };
  }
}

/** The agent of a path, else the one that the request's model names; frameworks put a provider before the name. */
function agentOf({ model }: ModelRequest, { requests, agent }: Caller): string {
  if (agent !== undefined) return agent;
  return known(requests.agents.includes(model) ? model : model.slice(model.lastIndexOf('/') + 1), requests);
}

function known(agent: string, { agents }: EpisodeRequests): string {
  if (agents.includes(agent)) return agent;
  const message = `there is no agent '${agent.slice(0, 100)}'; the team has ${agents.join(', ')}`;
  throw new DialectError(404, 'model_not_found', message);
}

/** Environment variables that clients of OpenAI and Anthropic read. */
const environment = (url: string, secret: string) => ({
  OPENAI_BASE_URL: `${url}/v1`,
  OPENAI_API_BASE: `${url}/v1`,
  OPENAI_API_KEY: secret,
  ANTHROPIC_BASE_URL: url,
  ANTHROPIC_API_KEY: secret,
});
