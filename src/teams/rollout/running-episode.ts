import { EpisodeOverError, messageOf } from '@drmas/engine/errors';
import { macrotask, onAbort } from '@drmas/engine/host';
import type { Episode, Turn } from '@drmas/engine/nouns';
import type { Scope } from '@drmas/engine/platform';
import { EpisodeFailure } from './episode-failure.js';
import type { EpisodeLog } from './episode-log.js';
import type { EpisodeRequest } from './rollout-context.js';

/** An error that a call of a program got in place of an answer. */
export interface Refusal {
  readonly error: unknown;
  /** The number of turns before it. */
  readonly turns: number;
}

/** One episode while it runs: the state that its calls share, and one end for all of them. */
export class RunningEpisode implements Scope {
  readonly request: EpisodeRequest;
  readonly replies = new OrderedReplies();
  /** The answers that the reward waits for, after `play` has ended. */
  readonly verdicts = new OrderedReplies();
  /** The turns so far; each delivered reply appends one. */
  readonly turns: Turn[] = [];
  readonly log: EpisodeLog;
  /** The calls of `play`, also those that were rejected or given up and are no turns. */
  calls = 0;
  /** The last refusal. Frameworks that stream lose the error, and throw another one later. */
  refusal: Refusal | undefined;
  /** The agent of the call of `play` that the program gave up by its signal, if it began no call since. */
  givenUp: string | undefined;
  readonly #refused = new Map<string, number>();
  /** The calls of `play` without an answer, by agent. */
  readonly #open = new Map<string, number>();
  /** The calls that `play` left without an answer, by agent; set when it returns. */
  #unanswered: Readonly<Record<string, number>> = {};
  readonly failed: Promise<never>;
  readonly #controller = new AbortController();
  readonly #warn: (message: string) => void;
  #reject: (failure: unknown) => void = () => {};

  /** @param warn receives errors of the team after the end that the end did not cause */
  constructor(request: EpisodeRequest, log: EpisodeLog, warn: (message: string) => void) {
    this.request = request;
    this.log = log;
    this.#warn = warn;
    this.failed = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.failed.catch(() => {}); // nothing awaits it once the episode is over
  }

  get name(): string {
    const { team, task, sample } = this.request;
    return `the team '${team.name}' on ${task.id}/${sample}`;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  refuse(agent: string): void {
    this.#refused.set(agent, (this.#refused.get(agent) ?? 0) + 1);
  }

  noteRefusal(error: unknown): void {
    this.refusal = { error, turns: this.turns.length };
  }

  /**
   * Counts a call of `play`. A call that the team gives up by its signal needs no answer.
   * @returns a function to call when the answer is delivered
   */
  openCall(agent: string, given: AbortSignal | undefined): () => void {
    const count = (by: 1 | -1) => this.#open.set(agent, (this.#open.get(agent) ?? 0) + by);
    let stopListening: (() => void) | undefined;
    let isOpen = true;
    const settle = () => {
      if (isOpen) count(-1);
      isOpen = false;
      stopListening?.();
    };
    count(1);
    this.givenUp = undefined;
    stopListening =
      given &&
      onAbort(given, () => {
        if (isOpen) this.givenUp = agent;
        settle();
      });
    return settle;
  }

  /**
   * Ends the calls that `play` did not wait for.
   * @throws EpisodeFailure if `play` waited for no call at all: then the episode has no turn, and `await` is missing
   */
  playReturned(): void {
    this.replies.stop();
    this.#unanswered = Object.fromEntries([...this.#open].filter(([, calls]) => calls > 0));
    const [agent] = Object.keys(this.#unanswered);
    if (agent !== undefined && this.turns.length === 0)
      throw new EpisodeFailure(
        'error',
        `play returned before its call of '${agent}' was answered: \`await\` the call`,
        {
          agent,
        },
      );
  }

  get kept(): Pick<Episode, 'log' | 'refused' | 'unanswered'> {
    const { entries } = this.log;
    return {
      ...(entries === undefined ? {} : { log: entries }),
      ...(this.#refused.size === 0 ? {} : { refused: Object.fromEntries(this.#refused) }),
      ...(Object.keys(this.#unanswered).length === 0 ? {} : { unanswered: this.#unanswered }),
    };
  }

  /** Ends the episode with an EpisodeFailure; any other error ends the run. */
  fail(failure: unknown): void {
    this.#reject(failure);
  }

  /** Ends everything that the episode still waits for. @param why a clause for the error messages */
  end(why: string): void {
    this.replies.stop();
    this.verdicts.stop();
    this.#controller.abort(new EpisodeOverError(`the episode is over: ${why}`));
  }

  /**
   * An error that no code awaited fails the episode if it is not over. Later, requests are expected to end because the
   * signal fired; any other error causes a warning.
   */
  stray(error: unknown): void {
    if (!this.signal.aborted) this.fail(EpisodeFailure.of('error', error, 'no code awaited the failed promise'));
    else if (!isAbort(error, this.signal))
      this.#warn(`${this.name}: an error after the episode was over: ${messageOf(error)}`);
  }
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  try {
    return error === signal.reason || (error instanceof Error && error.name === 'AbortError');
  } catch {
    return false;
  }
}

/**
 * Delivers the results of concurrent work in the order in which the work began, each in a separate macrotask. The
 * team's code has reacted to one reply (with further calls, for instance) before the next arrives. The order of an
 * episode's calls therefore depends only on that code, and not on which generation was ready first.
 */
class OrderedReplies {
  readonly #waiting: { deliver?: () => void }[] = [];
  readonly #schedule: (task: () => void) => void;
  #scheduled = false;
  #stopped = false;

  constructor(schedule = macrotask) {
    this.#schedule = schedule;
  }

  /** Calls `receive` once `work` has settled and all results that were added before have been delivered. */
  add<T>(work: Promise<T>, receive: (result: PromiseSettledResult<T>) => void): void {
    if (this.#stopped) return;
    const entry: { deliver?: () => void } = {};
    this.#waiting.push(entry);
    const settle = (result: PromiseSettledResult<T>) => {
      entry.deliver = () => receive(result);
      this.#next();
    };
    work.then(
      (value) => settle({ status: 'fulfilled', value }),
      (reason) => settle({ status: 'rejected', reason }),
    );
  }

  stop(): void {
    this.#stopped = true;
    this.#waiting.length = 0;
  }

  #next(): void {
    if (this.#scheduled || this.#waiting[0]?.deliver === undefined) return;
    this.#scheduled = true;
    this.#schedule(() => {
      this.#scheduled = false;
      this.#waiting.shift()?.deliver?.();
      this.#next();
    });
  }
}
