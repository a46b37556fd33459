/** Finds the episode that a model call belongs to, if the call itself does not name one. */

import { UnattributedCallError } from '@drmas/engine/errors';
import { onAbort } from '@drmas/engine/host';
import { currentScope, type Scope } from '@drmas/engine/platform';
import type { AgentWays, EpisodeWays } from '../../teams/index.js';
import type { ModelAnswer, ModelRequest, Said } from '../dialects/dialect.js';

export interface EpisodeCalls {
  readonly agents: readonly string[];
  /**
   * Calls an agent. Rejects with a DialectError for a name that no agent has and messages that do not fit its context,
   * with an EpisodeOverError once the episode is over, and with the signal's reason.
   */
  complete(agent: string, request: ModelRequest, signal: AbortSignal | undefined): Promise<ModelAnswer>;
  /**
   * The number of tokens of a request's prompt; undefined if it is unknown. Throws a DialectError for an unknown agent
   * or a text that its tokenizer cannot represent, and an EpisodeOverError once the episode is over.
   */
  measure(agent: string, request: ModelRequest): number | undefined;
  recall(id: string): Said | undefined;
  /** Hears of the error of a call that ended before `complete`, in case the program's framework loses the error. */
  noteRefusal(error: unknown): void;
}

/** Connects the clients of one framework to the agents of an episode. */
export interface AgentAdapter {
  /** Makes the connections to one agent. Each is a property of the agent in `play`, made when it is first read. */
  readonly toAgent: { readonly [Way in keyof AgentWays]?: (calls: EpisodeCalls, agent: string) => AgentWays[Way] };
  /** The connections to all agents: properties of the argument of `play`. */
  readonly toEpisode?: (calls: EpisodeCalls) => Partial<EpisodeWays>;
}

const calls = new WeakMap<Scope, EpisodeCalls>();
const playing = new Set<Scope>();

/** Lets the code of an episode find the episode's agents, also after its end, when every call rejects. */
export function offer(episode: Scope, offered: EpisodeCalls): void {
  calls.set(episode, offered);
  playing.add(episode);
  onAbort(episode.signal, () => playing.delete(episode));
}

export function currentCalls(): EpisodeCalls | undefined {
  const scope = currentScope();
  return scope && calls.get(scope);
}

/**
 * The agents of the episode that a call belongs to; undefined if no episode is being played.
 * @throws UnattributedCallError if episodes are being played and the call belongs to none
 */
export function callsOfCaller(): EpisodeCalls | undefined {
  const current = currentCalls();
  if (current === undefined && playing.size > 0) throw new UnattributedCallError(LOST);
  return current;
}

const LOST =
  'unattributed call: a model was called by code that belongs to none of the episodes that are being played. ' +
  'Usual causes: a queue whose jobs run in the context of another caller (p-queue, a worker loop, a batching loader), ' +
  'the handler of an EventEmitter, a generator made in one place and read in another, a promise that is made once and ' +
  'shared (memoised). Bind the function with AsyncResource.bind where the episode passes it on, or use ' +
  'the connections of agents.<name> in play, such as agents.<name>.model, which know their episode.';
