/** What the gateway does for one episode: it answers calls, counts them, and answers no call twice. */
import { createHash } from 'node:crypto';
import { DialectError } from '../../core/errors.js';
import type { ModelAnswer, ModelRequest, Said } from '../../dialects/dialect.js';
import type { ModelCall } from '../../dialects/model-app.js';
import { onAbort, unlessAborted } from '../../platform/on-abort.js';
import type { EpisodeInPlay } from '../../rollout/rollout-context.js';
import type { EpisodeCalls } from '../attribution.js';
import { promptTokens } from './prompt-tokens.js';

/** An answer that is being made or was made, and the clients that wait for it. */
interface Flight {
  readonly answer: Promise<ModelAnswer>;
  readonly controller: AbortController;
  waiting: number;
  settled: boolean;
}

interface DeskOptions {
  readonly episode: EpisodeInPlay;
  readonly calls: EpisodeCalls;
  /** The most calls of the episode. */
  readonly maxCalls: number;
}

const SPENT = 'This episode may make no more calls of models; this text ends it.';

/** How a call came, besides what it asks. */
type Arrival = Pick<ModelCall<unknown>, 'signal' | 'retry' | 'text'>;

export class EpisodeDesk {
  readonly #options: DeskOptions;
  readonly #flights = new Map<string, Flight>();
  /** The calls that were begun, those that were given up or refused included, and those that became turns. */
  #begun = 0;
  #finished = 0;
  #farewell = false;

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /** The names of the team's agents. */
  get agents(): readonly string[] {
    return this.#options.calls.agents;
  }

  /**
   * Answers a call. One that a client sends again gets the answer that was made before, or waits for it with the first;
   * an equal one that is new is another call. When nobody waits any more, the call is given up.
   * @throws DialectError, EpisodeOverError
   */
  async complete(agent: string, request: ModelRequest, { signal, retry, text }: Arrival): Promise<ModelAnswer> {
    const name = createHash('sha256').update(`${agent}\n${text}`).digest('hex');
    const earlier = retry > 0 ? this.#flights.get(name) : undefined;
    const flight = earlier ?? this.#begin(name, agent, request);
    flight.waiting++;
    const stopListening = onAbort(signal, () => {
      flight.waiting--;
      if (flight.waiting > 0 || flight.settled) return;
      this.#forget(name, flight);
      flight.controller.abort(signal.reason);
    });
    return unlessAborted(flight.answer, signal).finally(stopListening);
  }

  /** What was said in the episode under an answer's id. */
  recall(id: string): Said | undefined {
    return this.#options.calls.recall(id);
  }

  /** Counts the tokens of a prompt, which is no call. @throws DialectError */
  countTokens(agent: string, request: ModelRequest): number {
    return promptTokens(this.#options.calls, agent, request);
  }

  #begin(name: string, agent: string, request: ModelRequest): Flight {
    const controller = new AbortController();
    const answer = this.#answer(agent, request, controller.signal);
    const flight: Flight = { answer, controller, waiting: 0, settled: false };
    this.#flights.set(name, flight);
    const settle = () => {
      flight.settled = true;
    };
    answer.then(settle, () => {
      settle();
      this.#forget(name, flight);
    });
    return flight;
  }

  /** A later call of the same name may stand in its place. */
  #forget(name: string, flight: Flight): void {
    if (this.#flights.get(name) === flight) this.#flights.delete(name);
  }

  async #answer(agent: string, request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const { calls, episode, maxCalls } = this.#options;
    episode.signal.throwIfAborted();
    if (this.#begun + episode.turns.length - this.#finished >= maxCalls) return this.#end(request);
    this.#begun++;
    const answer = await calls.complete(agent, request, signal);
    this.#finished++;
    return answer;
  }

  /**
   * The calls are spent. Agents seldom keep a limit of their own, and take a refusal for an accident; a text without
   * calls of tools ends their loop, an empty one does not.
   */
  #end({ model }: ModelRequest): ModelAnswer {
    if (this.#farewell)
      throw new DialectError(400, 'calls_spent', `the episode has made its ${this.#options.maxCalls} calls`);
    this.#farewell = true;
    const usage = { promptTokens: 0, responseTokens: 0 };
    return { id: 'calls-spent', model, content: SPENT, toolCalls: [], finishReason: 'stop', usage };
  }
}
