import { ArgumentError } from '@drmas/engine/errors';
import { nextMacrotask, onAbort, type Round } from '@drmas/engine/host';
import type { Episode, EpisodeGroup, Task } from '@drmas/engine/nouns';
import pLimit from 'p-limit';
import { rewardTogether } from './group-reward.js';
import { playEpisode } from './play-episode.js';
import type { EpisodeRequest, Replay, RolloutContext } from './rollout-context.js';

interface GroupsRequest<Data = unknown>
  extends Pick<EpisodeRequest<Data>, 'team' | 'phase' | 'step' | 'sampling' | 'versions' | 'signal'> {
  readonly tasks: readonly Task<Data>[];
  /** The number of episodes a task, one for all or one for each: G in training, k of avg@k in evaluation. */
  readonly groupSize: number | readonly number[];
  /**
   * The number of a group's first sample; 0 unless it says otherwise. If a task comes twice, its second group goes on
   * after the samples of the first: equal samples of a task are equal episodes.
   */
  readonly firstSample?: number;
  /** For each of the tasks the episode of it that is played again, from one of its turns on, as a group of one. */
  readonly replays?: readonly (Replay & Pick<EpisodeRequest, 'sample'>)[];
  /** See `EpisodeRequest.ready`. Only for an executor that says `waits`. */
  readonly ready?: Promise<unknown> | undefined;
}

/** A player of episodes: by default this process; a queue on a broker could implement the same interface. */
export interface RolloutExecutor {
  /**
   * Plays the groups and returns them in the order of the tasks, with the episodes in the order of their samples,
   * failed ones included.
   *
   * Rejects with the signal's reason when interrupted; no episode is running then.
   */
  playGroups<Data>(request: GroupsRequest<Data>): Promise<EpisodeGroup<Data>[]>;
  /** Whether episodes wait for a request's `ready`. */
  readonly waits?: boolean;
  close?(): Promise<void>;
}

type PlayOne = <Data>(request: EpisodeRequest<Data>) => Promise<Episode<Data>>;
type RoundContext = Pick<RolloutContext, 'listener' | 'concurrency' | 'watch' | 'agents' | 'partWeights'>;

interface Player {
  readonly play: PlayOne;
  /** Begins work at once, or when a further episode may begin. */
  readonly whenFree: <T>(begin: () => Promise<T>) => Promise<T>;
}

/** Plays the groups of a request by its episodes: all at once, or as many of them as the context allows. */
export function groupsByEpisode(context: RoundContext, play: PlayOne): RolloutExecutor['playGroups'] {
  const { concurrency = Number.POSITIVE_INFINITY } = context;
  // Rounds that are played at once share it, and the one that began first goes first.
  const whenFree: Player['whenFree'] = Number.isFinite(concurrency) ? pLimit(concurrency) : (begin) => begin();
  return async (request) => new PlayedRound(request, { ...context, play, whenFree }).groups();
}

/** A group whose episodes have begun. */
interface BegunGroup<Data> {
  readonly episodes: readonly Promise<Episode<Data>>[];
  /** The group with its rewards. */
  readonly whole: Promise<EpisodeGroup<Data>>;
}

/** The groups of one request while they are played. */
class PlayedRound<Data> {
  readonly #request: GroupsRequest<Data>;
  readonly #context: RoundContext & Player;
  /** The number of episodes of each task. */
  readonly #sizes: readonly number[];
  /** The events that listeners hear of. */
  readonly #round: Round;
  /** The first sample of each task that no group has, by the task's id. */
  readonly #nextSample = new Map<string, number>();
  /** An error that is no episode's failure (an interruption, a mistake in this process) ends all other episodes. */
  readonly #controller = new AbortController();

  /** @throws ArgumentError for a size of groups that is no positive integer, or not one for each task */
  constructor(request: GroupsRequest<Data>, context: RoundContext & Player) {
    const { groupSize, tasks, phase, step } = request;
    const wrong = [groupSize].flat().find((size) => !Number.isInteger(size) || size < 1);
    if (wrong !== undefined) throw new ArgumentError(`groupSize: expected a positive integer, got ${wrong}`);
    const sizes = typeof groupSize === 'number' ? tasks.map(() => groupSize) : groupSize;
    if (sizes.length !== tasks.length)
      throw new ArgumentError(`groupSize: expected one for each of ${tasks.length} tasks, got ${sizes.length}`);
    this.#request = request;
    this.#context = context;
    this.#sizes = sizes;
    this.#round = { phase, step, episodes: sizes.reduce((sum, size) => sum + size, 0) };
  }

  /** Plays all groups. @throws the reason of the request's signal; an error that is no episode's failure */
  async groups(): Promise<EpisodeGroup<Data>[]> {
    const { tasks, ready, signal: run } = this.#request;
    const controller = this.#controller;
    run?.throwIfAborted();
    const removeListener = run && onAbort(run, () => controller.abort(run.reason));
    this.#context.listener?.round?.(this.#round);
    const endWatch = this.#context.watch?.();
    const begun: BegunGroup<Data>[] = [];
    try {
      for (const [t, task] of tasks.entries()) {
        // The messages of the work that episodes wait for are handled in between.
        if (ready !== undefined && t > 0) await nextMacrotask();
        controller.signal.throwIfAborted();
        begun.push(this.#begin(task, t));
      }
      return await Promise.all(begun.map(({ whole }) => whole));
    } catch (error) {
      controller.abort(error);
      // The code of the others may still be returning, for as long as a failed episode may.
      await Promise.allSettled(begun.flatMap(({ episodes, whole }) => [...episodes, whole]));
      throw error;
    } finally {
      endWatch?.();
      removeListener?.();
    }
  }

  /** Begins the episodes of the task at a place in the request. */
  #begin(task: Task<Data>, place: number): BegunGroup<Data> {
    const replay = this.#request.replays?.[place];
    const next = this.#unusedSample(task);
    const first = replay?.sample ?? next;
    const count = replay === undefined ? (this.#sizes[place] ?? 0) : 1;
    this.#nextSample.set(task.id, Math.max(next, first + count));
    const episodes = Array.from({ length: count }, (_, i) => this.#playOne(task, first + i, replay));
    const whole = this.#rewarded(task, episodes);
    whole.catch(() => {}); // reported once all groups have begun
    return { episodes, whole };
  }

  #unusedSample({ id }: Task<Data>): number {
    return this.#nextSample.get(id) ?? this.#request.firstSample ?? 0;
  }

  #playOne(task: Task<Data>, sample: number, replay: Replay | undefined): Promise<Episode<Data>> {
    return this.#context.whenFree(async () => {
      const listener = this.#context.listener?.episode?.({ round: this.#round, task, sample });
      const played = await this.#play({ task, sample, replay, listener });
      listener?.ended?.(played);
      return played;
    });
  }

  /** The group when its episodes are over, with the rewards that the team gives it as a whole. */
  async #rewarded(task: Task<Data>, episodes: readonly Promise<Episode<Data>>[]): Promise<EpisodeGroup<Data>> {
    const { team } = this.#request;
    const group = { task, episodes: await Promise.all(episodes) };
    if (team.rewardGroup === undefined) return group;
    const sample = this.#unusedSample(task);
    return rewardTogether(team, group, this.#context, (judged) =>
      this.#context.whenFree(() => this.#play({ task, sample, judged })),
    );
  }

  #play(episode: Pick<EpisodeRequest<Data>, 'task' | 'sample' | 'replay' | 'listener' | 'judged'>) {
    const { tasks, groupSize, firstSample, replays, ...shared } = this.#request;
    return this.#context.play({ ...shared, ...episode, signal: this.#controller.signal });
  }
}

export function inProcessExecutor(context: RolloutContext): RolloutExecutor {
  return { playGroups: groupsByEpisode(context, (request) => playEpisode(context, request)), waits: true };
}
