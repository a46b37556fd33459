/** The gateway's requests of one episode: answers and counts them, and answers a repeated request only once. */
import { createHash } from 'node:crypto';
import { DialectError } from '@drmas/engine/errors';
import { onAbort, unlessAborted } from '@drmas/engine/host';
import type { EpisodeInPlay } from '../../../teams/rollout.js';
import type { ModelAnswer, ModelRequest, Said } from '../../dialects/dialect.js';
import type { ServedCall } from '../../dialects/model-app.js';
import type { EpisodeCalls } from '../attribution.js';
import { promptTokens } from './prompt-tokens.js';

interface SharedAnswer {
  readonly answer: Promise<ModelAnswer>;
  readonly controller: AbortController;
  waiting: number;
  settled: boolean;
}

interface EpisodeRequestsOptions {
  readonly episode: EpisodeInPlay;
  readonly calls: EpisodeCalls;
  readonly limits: CallLimits;
}

export interface CallLimits {
  /** The most calls of an episode over the gateway. */
  readonly maxCalls: number;
  /** The most calls of an episode, whichever way they come. */
  readonly maxTurns: number;
}

/** The most requests of an episode that are probes. OpenEnv sends three, and more to an endpoint that refuses some. */
const MOST_PROBES = 16;

const SPENT = 'This episode may make no more calls of models; this text ends it.';

type RequestDetails = Pick<ServedCall<unknown>, 'signal' | 'retry' | 'text'>;

export class EpisodeRequests {
  readonly #options: EpisodeRequestsOptions;
  readonly #answers = new Map<string, SharedAnswer>();
  /** The calls over the gateway that were begun, including cancelled and refused ones. */
  #begun = 0;
  #probes = 0;
  #endTextSent = false;

  constructor(options: EpisodeRequestsOptions) {
    this.#options = options;
  }

  get agents(): readonly string[] {
    return this.#options.calls.agents;
  }

  /**
   * Answers a call. A client that retries a request gets the earlier answer, or waits for it together with the first
   * request; an equal request that is not a retry is a new call. When no client waits any more, the call is cancelled.
   * @throws DialectError, EpisodeOverError
   */
  async complete(agent: string, request: ModelRequest, { signal, retry, text }: RequestDetails): Promise<ModelAnswer> {
    if (request.probe === true) return this.#probe(agent, request, signal);
    const name = createHash('sha256').update(`${agent}\n${text}`).digest('hex');
    const earlier = retry > 0 ? this.#answers.get(name) : undefined;
    const shared = earlier ?? this.#begin(name, agent, request);
    shared.waiting++;
    const stopListening = onAbort(signal, () => {
      shared.waiting--;
      if (shared.waiting > 0 || shared.settled) return;
      this.#forget(name, shared);
      shared.controller.abort(signal.reason);
    });
    return unlessAborted(shared.answer, signal).finally(stopListening);
  }

  recall(id: string): Said | undefined {
    return this.#options.calls.recall(id);
  }

  /** Counts the tokens of a prompt; this does not count as a call. @throws DialectError */
  countTokens(agent: string, request: ModelRequest): number {
    return promptTokens(this.#options.calls, agent, request);
  }

  /** Probes are few, and no client may sample without an end. */
  #probe(agent: string, request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    if (this.#probes++ >= MOST_PROBES)
      throw new DialectError(400, 'calls_spent', `the episode has answered its ${MOST_PROBES} probes`);
    return this.#options.calls.complete(agent, request, signal);
  }

  #begin(name: string, agent: string, request: ModelRequest): SharedAnswer {
    const controller = new AbortController();
    const answer = this.#answer(agent, request, controller.signal);
    const shared: SharedAnswer = { answer, controller, waiting: 0, settled: false };
    this.#answers.set(name, shared);
    const settle = () => {
      shared.settled = true;
    };
    answer.then(settle, () => {
      settle();
      this.#forget(name, shared);
    });
    return shared;
  }

  /** Keeps the entry if a later call has taken the name. */
  #forget(name: string, shared: SharedAnswer): void {
    if (this.#answers.get(name) === shared) this.#answers.delete(name);
  }

  async #answer(agent: string, request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const { calls, episode, limits } = this.#options;
    episode.signal.throwIfAborted();
    if (this.#begun >= limits.maxCalls || episode.calls >= limits.maxTurns) return this.#end(request);
    this.#begun++;
    return calls.complete(agent, request, signal);
  }

  /** The limit that the calls have reached. */
  get #most(): number {
    const { maxCalls, maxTurns } = this.#options.limits;
    return this.#begun >= maxCalls ? maxCalls : maxTurns;
  }

  /** Once all calls are used up: a text without calls ends an agent's loop; a refusal or an empty text does not. */
  #end({ model }: ModelRequest): ModelAnswer {
    if (this.#endTextSent) throw new DialectError(400, 'calls_spent', `the episode has made its ${this.#most} calls`);
    this.#endTextSent = true;
    const usage = { promptTokens: 0, responseTokens: 0 };
    return { id: 'calls-spent', model, content: SPENT, toolCalls: [], finishReason: 'stop', usage };
  }
}
