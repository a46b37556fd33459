/** Finds the episode that a call of a model belongs to, where the call itself does not say. */
import { UnattributedCallError } from '../core/errors.js';
import type { ModelAnswer, ModelRequest, Said } from '../dialects/dialect.js';
import { currentScope, type Scope } from '../platform/async-scopes.js';
import { onAbort } from '../platform/on-abort.js';
import type { MeasurePrompt } from '../rollout/rollout-context.js';

/** How foreign code calls the agents of one episode. */
export interface EpisodeCalls {
  /** The names of the team's agents. */
  readonly agents: readonly string[];
  /**
   * Calls an agent. Rejects with a DialectError for a name that no agent has and messages that do not fit its context,
   * with an EpisodeOverError once the episode is over, and with the signal's reason.
   */
  complete(agent: string, request: ModelRequest, signal: AbortSignal | undefined): Promise<ModelAnswer>;
  /**
   * The tokens of a request's prompt; undefined where they are not known. Throws a DialectError for a name that no
   * agent has and a text that its tokenizer has not, and an EpisodeOverError once the episode is over.
   */
  measure(agent: string, request: ModelRequest): ReturnType<MeasurePrompt>;
  /** What a turn of the episode said, by the id of its answer. */
  recall(id: string): Said | undefined;
}

const calls = new WeakMap<Scope, EpisodeCalls>();
const playing = new Set<Scope>();

/** Lets the code of an episode find the episode's agents, also after its end, when every call rejects. */
export function offer(episode: Scope, offered: EpisodeCalls): void {
  calls.set(episode, offered);
  playing.add(episode);
  onAbort(episode.signal, () => playing.delete(episode));
}

/** The agents of the episode that the running code belongs to; undefined where it belongs to none. */
export function currentCalls(): EpisodeCalls | undefined {
  const scope = currentScope();
  return scope && calls.get(scope);
}

/**
 * The agents of the episode that a call belongs to; undefined where nothing is played at all.
 * @throws UnattributedCallError where episodes are played and the call belongs to none
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
  'shared (memoised). Bind the function with AsyncResource.bind where the episode hands it over, or use ' +
  'agents.<name>.model and agents.<name>.openai of play, which know their episode.';
