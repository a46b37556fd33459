import type { Sampling } from '../contract/sampling.js';
import type { Episode, EpisodeGroup } from '../core/episode.js';
import { ArgumentError } from '../core/errors.js';
import type { Task } from '../core/task.js';
import type { Team } from '../teams/team.js';
import { onAbort } from './on-abort.js';
import { playEpisode } from './play-episode.js';
import type { Phase, RolloutContext } from './rollout-context.js';

interface GroupsRequest<Data = unknown> {
  readonly team: Team<Data>;
  readonly tasks: readonly Task<Data>[];
  /** Episodes a task: G in training, k of avg@k in evaluation. */
  readonly groupSize: number;
  readonly phase: Phase;
  readonly step: number;
  /** In place of what the agents' settings say. */
  readonly sampling?: Partial<Sampling> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Hears of every episode as it ends, in whatever order that happens. */
  readonly onEpisode?: ((episode: Episode<Data>) => void) | undefined;
}

/** Plays episodes. In this process by default; a queue on a broker can stand behind the same contract. */
export interface RolloutExecutor {
  /**
   * Groups in the order of the tasks, episodes in the order of their samples. Failed episodes are among them.
   *
   * Rejects with the signal's reason when interrupted, with no episode left running.
   */
  playGroups<Data>(request: GroupsRequest<Data>): Promise<EpisodeGroup<Data>[]>;
}

/** Plays all episodes of a request at once: no episode waits for another, only for the sampler. */
export function inProcessExecutor(context: RolloutContext): RolloutExecutor {
  return {
    async playGroups({ team, tasks, groupSize, phase, step, sampling, signal: run, onEpisode }) {
      if (!Number.isInteger(groupSize) || groupSize < 1)
        throw new ArgumentError(`groupSize: expected a positive integer, got ${groupSize}`);
      run?.throwIfAborted();
      // One error that is not an episode's own (an interruption, a mistake in this process) ends all the others.
      const controller = new AbortController();
      const forget = run && onAbort(run, () => controller.abort(run.reason));
      const play = async (task: Task<(typeof tasks)[number]['data']>, sample: number) => {
        const { signal } = controller;
        const episode = await playEpisode(context, { team, task, sample, phase, step, sampling, signal });
        onEpisode?.(episode);
        return episode;
      };
      try {
        return await Promise.all(
          tasks.map(async (task) => ({
            task,
            episodes: await Promise.all(Array.from({ length: groupSize }, (_, sample) => play(task, sample))),
          })),
        );
      } catch (error) {
        controller.abort(error);
        throw error;
      } finally {
        forget?.();
      }
    },
  };
}
