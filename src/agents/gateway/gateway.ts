/** A run's agents for programs in any language: the app of the dialects on a port, with a secret for every episode. */
import type { Hono } from 'hono';
import { ArgumentError, DialectError } from '../../core/errors.js';
import type { ModelRequest } from '../../dialects/dialect.js';
import { modelApp } from '../../dialects/model-app.js';
import { onAbort } from '../../platform/on-abort.js';
import type { EpisodeInPlay } from '../../rollout/rollout-context.js';
import type { GatewayConnection } from '../../teams/ways-in.js';
import type { EpisodeCalls } from '../attribution.js';
import { EpisodeDesk } from './episode-desk.js';
import { EpisodeSecrets } from './episode-secrets.js';

export interface GatewayOptions {
  /** The most calls of one episode. */
  readonly maxCalls: number;
  /** Receives the settings of a request that the recipe decides. */
  readonly onIgnored: (agent: string, settings: readonly string[]) => void;
}

/** Who calls: an episode, and the agent where the path names one. */
interface Caller {
  readonly desk: EpisodeDesk;
  readonly agent: string | undefined;
}

/** The episodes that are played, behind one app. */
export class Gateway {
  readonly app: Hono;
  readonly #options: GatewayOptions;
  readonly #secrets = new EpisodeSecrets();
  readonly #desks = new Map<string, EpisodeDesk>();
  #episodes = 0;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.app = modelApp<Caller>({
      authorise: ({ secret, path }) => this.#callerOf(secret, path),
      models: ({ desk }) => desk.agents,
      recall: (id, { desk }) => desk.recall(id),
      complete: (request, call) => {
        const agent = agentOf(request, call.caller);
        if (request.ignored.length > 0) options.onIgnored(agent, request.ignored);
        return call.caller.desk.complete(agent, request, call);
      },
      countTokens: (request, caller) => caller.desk.countTokens(agentOf(request, caller), request),
    });
  }

  /** Opens the way to an episode's agents until the episode is over. @param url where the app is reached */
  connect(episode: EpisodeInPlay, calls: EpisodeCalls, url: string): GatewayConnection {
    const id = (this.#episodes++).toString(36);
    const { maxCalls } = this.#options;
    this.#desks.set(id, new EpisodeDesk({ episode, calls, maxCalls }));
    onAbort(episode.signal, () => this.#desks.delete(id));
    const secret = this.#secrets.secretOf(id);
    const urlOf = (agent: string) => {
      if (!calls.agents.includes(agent))
        throw new ArgumentError(`gateway: there is no agent '${agent}'; the team has ${calls.agents.join(', ')}`);
      return `${url}/e/${id}/a/${agent}`;
    };
    const envOf = (agent: string) => environment(urlOf(agent), secret);
    return { url, secret, urlOf, env: environment(url, secret), envOf };
  }

  /** The secret says whose call it is; a path that contradicts it says nothing. */
  #callerOf(secret: string | undefined, path: { episode: string; agent: string } | undefined): Caller {
    const id = secret === undefined ? undefined : this.#secrets.episodeOf(secret);
    if (id === undefined)
      throw new DialectError(401, 'unknown_secret', 'expected the secret of an episode as a bearer or as x-api-key');
    const desk = this.#desks.get(id);
    if (desk === undefined) throw new DialectError(400, 'episode_over', 'the episode is over');
    const agent = path?.episode === id ? path.agent : undefined;
    return { desk, agent: agent === undefined ? undefined : known(agent, desk) };
  }
}

/** The agent of a path, else the one that the request's model names; frameworks put a provider before the name. */
function agentOf({ model }: ModelRequest, { desk, agent }: Caller): string {
  if (agent !== undefined) return agent;
  return known(desk.agents.includes(model) ? model : model.slice(model.lastIndexOf('/') + 1), desk);
}

function known(agent: string, { agents }: EpisodeDesk): string {
  if (agents.includes(agent)) return agent;
  const message = `there is no agent '${agent.slice(0, 100)}'; the team has ${agents.join(', ')}`;
  throw new DialectError(404, 'model_not_found', message);
}

/** What clients of OpenAI and Anthropic read from their environment. */
const environment = (url: string, secret: string) => ({
  OPENAI_BASE_URL: `${url}/v1`,
  OPENAI_API_BASE: `${url}/v1`,
  OPENAI_API_KEY: secret,
  ANTHROPIC_BASE_URL: url,
  ANTHROPIC_API_KEY: secret,
});
