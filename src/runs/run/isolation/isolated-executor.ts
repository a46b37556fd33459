/** Plays a team's code in separate threads, so that broken code can harm only its own episode. */

import type { Worker } from 'node:worker_threads';
import { isGoneForGood, messageOf, TrainingError } from '@drmas/engine/errors';
import { type EpisodeListener, onAbort, unlessAborted } from '@drmas/engine/host';
import type { Episode } from '@drmas/engine/nouns';
import { startWorker } from '@drmas/engine/platform';
import pLimit from 'p-limit';
import type { RecipeCode } from '../../../method/recipe.js';
import {
  answerOf,
  groupsByEpisode,
  noScore,
  type PlayRequest,
  type RolloutContext,
  type RolloutExecutor,
  remoteSettings,
  type SpeakerRequest,
} from '../../../teams/rollout.js';
import { HeldTime } from '../../../teams/watchdog.js';
import type { FromPlayer, PlayerSettings, ToPlayer } from './player-messages.js';

export const THREADS = 2;

/**
 * Plays episodes in threads that load the recipe's code. Tokens and log-probs are bit for bit equal to episodes in the
 * program's own thread. A thread can be lost: its code did not return, took all its memory, or ended it. Then each of
 * its unfinished episodes is played again, one at a time; an episode that ends its thread again has failed. A request
 * that is aborted ends its own episodes only.
 */
export function isolatedExecutor(context: RolloutContext, code: RecipeCode, threads: number): RolloutExecutor {
  const settings = { ...remoteSettings(context), code };
  /** Threads that play many episodes at a time. */
  const players: Player[] = [];
  /** Threads that play one episode at a time, while they are free. */
  const idle: Player[] = [];
  const oneEach = pLimit(threads);
  const living = new Set<Player>();

  const newPlayer = (): Player => {
    const player = new Player(settings, context, () => living.delete(player));
    living.add(player);
    return player;
  };
  const playerAt = (place: number): Player => {
    const before = players[place];
    if (before !== undefined && !before.gone) return before;
    const player = newPlayer();
    players[place] = player;
    return player;
  };
  /** A free thread. The code of an earlier episode may have ended a thread while it was free. */
  const carefulPlayer = (): Player => {
    for (let player = idle.pop(); player !== undefined; player = idle.pop()) if (!player.gone) return player;
    return newPlayer();
  };
  const playAlone = async (request: PlayRequest, { listener, signal }: Audience): Promise<Episode> => {
    signal?.throwIfAborted();
    const player = carefulPlayer();
    try {
      return await player.play(request, { listener, signal });
    } catch (error) {
      if (error instanceof PlayerGoneError) return failed(request, error);
      throw error;
    } finally {
      if (!player.gone) idle.push(player);
    }
  };
  let next = 0;
  const play = async (request: PlayRequest, audience: Audience): Promise<Episode> => {
    const { signal } = audience;
    signal?.throwIfAborted();
    try {
      return await playerAt(next++ % threads).play(request, audience);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof PlayerGoneError)) throw error;
      const played = oneEach(() => playAlone(request, audience));
      return signal ? unlessAborted(played, signal) : played; // others may be played before it
    }
  };
  const endAll = async (reason?: unknown) => {
    players.length = 0;
    idle.length = 0;
    await Promise.all(Array.from(living, (player) => player.end(reason)));
  };

  const { watch: _, ...unwatched } = context; // no code of a team runs in this thread
  const playGroups = groupsByEpisode(unwatched, async ({ team: _, signal, listener, ...request }) => {
    const played = await play(request, { signal, listener });
    signal?.throwIfAborted();
    return { ...played, task: request.task };
  });

  return {
    playGroups: (request) =>
      playGroups(request).catch(async (error: unknown) => {
        if (error !== request.signal?.reason) await endAll(error); // other requests go on without an aborted one
        throw error;
      }),
    close: () => endAll(),
  };
}

/** The record of an episode whose thread was lost. Its turns were lost with the thread. */
function failed({ task, sample }: PlayRequest, { reason, message }: PlayerGoneError): Episode {
  return { task, sample, turns: [], outcome: undefined, score: noScore, failure: { reason, message } };
}

/** The memory limit of a thread's objects in MB; a team that needs more has a leak. */
const MOST_MEMORY_MB = 2048;

/**
 * The time that the code of an aborted episode has to return. A thread waits a little longer before it gives that code
 * up, so its message within this time says that the code has returned.
 */
const RETURN_MS = 900;

interface Audience {
  readonly listener: EpisodeListener | undefined;
  readonly signal: AbortSignal | undefined;
}

interface EpisodeInThread {
  readonly resolve: (played: Episode) => void;
  readonly reject: (error: unknown) => void;
  readonly audience: Audience;
}

/** The loss of a thread: its code did not return within the time of an episode, or the thread ended. */
class PlayerGoneError extends Error {
  readonly reason: 'timeout' | 'error';

  constructor(reason: 'timeout' | 'error', message: string) {
    super(message);
    this.reason = reason;
  }
}

class Player {
  readonly #worker: Worker;
  readonly #policies: RolloutContext['policies'];
  readonly #warn: (message: string) => void;
  readonly #episodes = new Map<number, EpisodeInThread>();
  readonly #calls = new Map<number, AbortController>();
  readonly #watch: NodeJS.Timeout;
  #next = 0;
  #gone: unknown;
  /** Whether the code of an aborted episode has not returned in time. The thread ends with its other episodes. */
  #isLast = false;

  constructor(
    settings: Omit<PlayerSettings, 'beats'>,
    { policies, warn = () => {} }: RolloutContext,
    onExit: () => void,
  ) {
    const beats = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
    this.#policies = policies;
    this.#warn = warn;
    // The team's prints go to standard error: standard output may hold events.
    const options = { stdout: true, resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB } };
    this.#worker = startWorker('player-thread', import.meta.url, { ...settings, beats }, options);
    this.#worker.stdout.on('data', (text) => process.stderr.write(text));
    this.#worker.on('message', (message: FromPlayer) => this.#receive(message));
    this.#worker.on('error', (error: unknown) => this.#leave(new PlayerGoneError('error', messageOf(error))));
    this.#worker.on('exit', () => {
      this.#leave(new PlayerGoneError('error', 'the team ended its thread'));
      onExit();
    });
    this.#watch = this.#watchBeats(beats, settings.timeoutMs);
  }

  get gone(): boolean {
    return this.#gone !== undefined || this.#isLast;
  }

  /**
   * Plays an episode. If the signal fires, the promise rejects with its reason once the code of the episode has
   * returned, or had its time to return.
   * @throws PlayerGoneError when the thread ends before it; EndpointError, DeviceError, TrainingError
   */
  async play(request: PlayRequest, audience: Audience): Promise<Episode> {
    if (this.#gone !== undefined) throw this.#gone;
    const { listener, signal } = audience;
    const episode = this.#next++;
    let timer: NodeJS.Timeout | undefined;
    const abort = () => {
      timer = setTimeout(() => this.#abandon(episode), RETURN_MS);
      this.#send({ type: 'abort', episode, why: messageOf(signal?.reason) });
    };
    const stopListening = signal && onAbort(signal, abort);
    try {
      return await new Promise((resolve, reject) => {
        this.#episodes.set(episode, { resolve, reject, audience });
        this.#send({ type: 'play', episode, request, observed: listener?.answered !== undefined });
      });
    } finally {
      clearTimeout(timer);
      stopListening?.();
    }
  }

  async end(reason: unknown = new PlayerGoneError('error', 'the thread was stopped')): Promise<void> {
    this.#leave(reason);
    await this.#worker.terminate();
  }

  /**
   * Ends the thread when its code has not let it beat for the given time. A gap between two looks counts as at most two
   * periods, because a thread of this program that was busy may have the news waiting that the other thread has ended.
   * Nor does the time count in which a busy machine gave the thread no processor.
   */
  #watchBeats(beats: Int32Array, timeoutMs: number): NodeJS.Timeout {
    const periodMs = Math.min(100, timeoutMs);
    let seen = 0;
    let silentMs = 0;
    let looked = performance.now();
    const held = new HeldTime(() => Atomics.load(beats, 1));
    return setInterval(() => {
      const beat = Atomics.load(beats, 0);
      const now = performance.now();
      if (beat !== seen || beat === 0 || this.#episodes.size === 0) {
        [seen, silentMs] = [beat, 0];
        held.restart();
      } else silentMs += Math.min(now - looked, 2 * periodMs);
      looked = now;
      if (silentMs > timeoutMs && held.ms(silentMs) > timeoutMs)
        void this.end(new PlayerGoneError('timeout', `its code did not return for ${timeoutMs} ms`));
    }, periodMs);
  }

  /** Gives up an aborted episode whose code may never return. The thread plays its other episodes, and then ends. */
  #abandon(episode: number): void {
    this.#isLast = true;
    this.#close(episode, ({ reject, audience }) => reject(audience.signal?.reason));
  }

  #close(episode: number, settle: (open: EpisodeInThread) => void): void {
    const open = this.#episodes.get(episode);
    this.#episodes.delete(episode);
    if (open !== undefined) settle(open);
    if (this.#isLast && this.#episodes.size === 0) void this.end();
  }

  #receive(message: FromPlayer): void {
    if (message.type === 'call') void this.#answer(message.call, message.policy, message.request);
    else if (message.type === 'cancel') this.#calls.get(message.call)?.abort();
    else if (message.type === 'answered')
      this.#episodes.get(message.episode)?.audience.listener?.answered?.(message.turn, message.time);
    else if (message.type === 'broken') void this.end(new TrainingError(message.message));
    else if (message.type === 'warning') this.#warn(message.message);
    else if (message.type === 'aborted')
      this.#close(message.episode, ({ reject, audience }) => reject(audience.signal?.reason));
    else this.#close(message.episode, ({ resolve }) => resolve(message.played));
  }

  async #answer(call: number, policy: string, request: SpeakerRequest): Promise<void> {
    const controller = new AbortController();
    this.#calls.set(call, controller);
    try {
      const value = await answerOf(this.#policies, policy, request, controller.signal);
      this.#send({ type: 'answer', call, value });
    } catch (error) {
      if (isGoneForGood(error)) await this.end(error);
      else if (!controller.signal.aborted) this.#send({ type: 'refusal', call, message: messageOf(error) });
    } finally {
      this.#calls.delete(call);
    }
  }

  #send(message: ToPlayer): void {
    if (this.#gone === undefined) this.#worker.postMessage(message);
  }

  #leave(reason: unknown): void {
    if (this.#gone !== undefined) return;
    this.#gone = reason;
    clearInterval(this.#watch);
    for (const { reject } of this.#episodes.values()) reject(reason);
    this.#episodes.clear();
    for (const controller of this.#calls.values()) controller.abort(reason);
  }
}
