/** Plays a team's code in threads of its own, where it can do no harm but to its own episode. */
import pLimit from 'p-limit';
import type { Episode } from '../../core/episode.js';
import type { EpisodeObserver } from '../../core/play/play-observer.js';
import { unlessAborted } from '../../platform/on-abort.js';
import type { RecipeCode } from '../../recipe/recipe.js';
import { groupsByEpisode, type RolloutExecutor } from '../../rollout/executor.js';
import type { RolloutContext } from '../../rollout/rollout-context.js';
import { noScore } from '../../rollout/score.js';
import { type PlayRequest, remoteSettings } from '../remote-speakers.js';
import { Player, PlayerGoneError } from './player.js';

/** Threads where the recipe says only that there shall be some. */
export const THREADS = 2;

/**
 * Plays episodes in threads that load the recipe's code. Tokens and log-probs are those of the program's thread, bit
 * for bit. When a thread is gone (its code did not return, took all its memory, or ended it), each of its unfinished
 * episodes is played again, one at a time: the one that ends its thread once more has failed.
 */
export function isolatedExecutor(context: RolloutContext, code: RecipeCode, threads: number): RolloutExecutor {
  const settings = { ...remoteSettings(context), code };
  /** Threads that play many episodes at a time. */
  const players: Player[] = [];
  /** Threads that play one at a time, and those of them that have none. */
  const careful = new Set<Player>();
  const idle: Player[] = [];
  const oneEach = pLimit(threads);

  const playerAt = (place: number): Player => {
    const before = players[place];
    if (before !== undefined && !before.gone) return before;
    const player = new Player(settings, context);
    players[place] = player;
    return player;
  };
  const playAlone = async (request: PlayRequest, observer: EpisodeObserver | undefined): Promise<Episode> => {
    const player = idle.pop() ?? new Player(settings, context);
    careful.add(player);
    try {
      const played = await player.play(request, observer);
      idle.push(player);
      return played;
    } catch (error) {
      careful.delete(player);
      if (error instanceof PlayerGoneError) return failed(request, error);
      throw error;
    }
  };
  let next = 0;
  const play = async (request: PlayRequest, observer: EpisodeObserver | undefined): Promise<Episode> => {
    try {
      return await playerAt(next++ % threads).play(request, observer);
    } catch (error) {
      if (!(error instanceof PlayerGoneError)) throw error;
      return oneEach(() => playAlone(request, observer));
    }
  };
  const endAll = async (reason?: unknown) => {
    const all = [...players.splice(0), ...careful];
    careful.clear();
    idle.length = 0;
    await Promise.all(all.map((player) => player.end(reason)));
  };

  const { watch: _, ...unwatched } = context; // no code of a team runs in this thread
  const playGroups = groupsByEpisode(unwatched, async ({ team: _, signal, observer, ...request }) => {
    const played = play(request, observer);
    return { ...(await (signal ? unlessAborted(played, signal) : played)), task: request.task };
  });

  return {
    playGroups: (request) =>
      playGroups(request).catch(async (error: unknown) => {
        await endAll(error);
        throw error;
      }),
    close: () => endAll(),
  };
}

/** The record of an episode whose thread is gone: what it had played went with the thread. */
function failed({ task, sample }: PlayRequest, { reason, message }: PlayerGoneError): Episode {
  return { task, sample, turns: [], outcome: undefined, score: noScore, failure: { reason, message } };
}
