import type { Sampling } from '@drmas/engine/contract';
import { ArgumentError } from '@drmas/engine/errors';
import { nextMacrotask, onAbort, type Phase } from '@drmas/engine/host';
import type { Episode, EpisodeGroup, Task } from '@drmas/engine/nouns';
import pLimit from 'p-limit';
import type { Team } from '../team/team.js';
import { rewardTogether } from './group-reward.js';
import { playEpisode } from './play-episode.js';
import type { EpisodeRequest, Replay, RolloutContext, Versions } from './rollout-context.js';

interface GroupsRequest<Data = unknown> {
  readonly team: Team<Data>;
  readonly tasks: readonly Task<Data>[];
  /** The number of episodes a task, one for all or one for each: G in training, k of avg@k in evaluation. */
  readonly groupSize: number | readonly number[];
  /**
   * The number of a group's first sample; 0 unless it says otherwise. If a task comes twice, its second group goes on
   * after the samples of the first: equal samples of a task are equal episodes.
   */
  readonly firstSample?: number;
  readonly phase: Phase;
  readonly step: number;
  readonly sampling?: Partial<Sampling> | undefined;
  /** The published versions that play, by policy; the last one of a policy that is not named. */
  readonly versions?: Versions | undefined;
  /** For each of the tasks the episode of it that is played again, from one of its turns on, as a group of one. */
  readonly replays?: readonly (Replay & Pick<EpisodeRequest, 'sample'>)[];
  /** See `EpisodeRequest.ready`. Only for an executor that says `waits`. */
  readonly ready?: Promise<unknown> | undefined;
  readonly signal?: AbortSignal | undefined;
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

/** Plays the groups of a request by its episodes: all at once, or as many of them as the context allows. */
export function groupsByEpisode(
  {
    listener,
    concurrency = Number.POSITIVE_INFINITY,
    watch,
    ...scoring
  }: Pick<RolloutContext, 'listener' | 'concurrency' | 'watch' | 'agents' | 'partWeights'>,
  play: <Data>(request: EpisodeRequest<Data>) => Promise<Episode<Data>>,
): RolloutExecutor['playGroups'] {
  // Rounds that are played at once share it, and the one that began first goes first.
  const limit = Number.isFinite(concurrency) ? pLimit(concurrency) : undefined;
  return async ({ team, tasks, groupSize, firstSample = 0, phase, step, replays, signal: run, ...settings }) => {
    const sizes = typeof groupSize === 'number' ? tasks.map(() => groupSize) : groupSize;
    const wrong = [groupSize].flat().find((size) => !Number.isInteger(size) || size < 1);
    if (wrong !== undefined) throw new ArgumentError(`groupSize: expected a positive integer, got ${wrong}`);
    if (sizes.length !== tasks.length)
      throw new ArgumentError(`groupSize: expected one for each of ${tasks.length} tasks, got ${sizes.length}`);
    run?.throwIfAborted();
    // An error that is no episode's failure (an interruption, a mistake in this process) ends all other episodes.
    const controller = new AbortController();
    const removeListener = run && onAbort(run, () => controller.abort(run.reason));
    const round = { phase, step, episodes: sizes.reduce((sum, size) => sum + size, 0) };
    listener?.round?.(round);
    type Data = (typeof tasks)[number]['data'];
    const { signal } = controller;
    const whenFree = <T>(begin: () => Promise<T>) => (limit ? limit(begin) : begin());
    const playOne = (task: Task<Data>, sample: number, replay?: Replay) =>
      whenFree(async () => {
        const heard = listener?.episode?.({ round, task, sample });
        const played = await play({ team, task, sample, phase, step, ...settings, replay, signal, listener: heard });
        heard?.ended?.(played);
        return played;
      });
    /** The first sample of each task that no group has. */
    const unused = new Map<string, number>();
    const rewarded = async (task: Task<Data>, episodes: readonly Promise<Episode<Data>>[]) => {
      const group = { task, episodes: await Promise.all(episodes) };
      if (team.rewardGroup === undefined) return group;
      const sample = unused.get(task.id) ?? firstSample; // no episode of the task has it
      return rewardTogether(team, group, scoring, (judged) =>
        whenFree(() => play({ team, task, sample, phase, step, ...settings, signal, judged })),
      );
    };
    const endWatch = watch?.();
    const beginGroup = (task: Task<Data>, t: number) => {
      const replay = replays?.[t];
      const next = unused.get(task.id) ?? firstSample;
      const first = replay?.sample ?? next;
      const count = replay === undefined ? (sizes[t] ?? 0) : 1;
      const samples = Array.from({ length: count }, (_, i) => first + i);
      unused.set(task.id, Math.max(next, first + count));
      const episodes = samples.map((sample) => playOne(task, sample, replay));
      const whole = rewarded(task, episodes);
      whole.catch(() => {}); // reported once all groups have begun
      return { episodes, whole };
    };
    const groups: ReturnType<typeof beginGroup>[] = [];
    try {
      for (const [t, task] of tasks.entries()) {
        // The messages of the work that episodes wait for are handled in between.
        if (settings.ready !== undefined && t > 0) await nextMacrotask();
        signal.throwIfAborted();
        groups.push(beginGroup(task, t));
      }
      return await Promise.all(groups.map(({ whole }) => whole));
    } catch (error) {
      controller.abort(error);
      // The code of the others may still be returning, for as long as a failed episode may.
      await Promise.allSettled(groups.flatMap(({ episodes, whole }) => [...episodes, whole]));
      throw error;
    } finally {
      endWatch?.();
      removeListener?.();
    }
  };
}

export function inProcessExecutor(context: RolloutContext): RolloutExecutor {
  return { playGroups: groupsByEpisode(context, (request) => playEpisode(context, request)), waits: true };
}
