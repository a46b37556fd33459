/** Plays a team's code in separate threads, so that broken code can harm only its own episode. */
import pLimit from 'p-limit';
import { unlessAborted } from '../../../base/async.js';
import type { EpisodeListener } from '../../../base/host.js';
import type { Episode } from '../../../base/nouns.js';
import type { RecipeCode } from '../../../method/recipe.js';
import type { RolloutContext } from '../../../teams/rollout.js';
import {
  groupsByEpisode,
  noScore,
  type PlayRequest,
  type RolloutExecutor,
  remoteSettings,
} from '../../../teams/rollout.js';
import { Player, PlayerGoneError } from './player.js';

/** The number of threads if the recipe gives none. */
export const THREADS = 2;

/**
 * Plays episodes in threads that load the recipe's code. Tokens and log-probs are bit for bit equal to episodes in the
 * program's own thread. A thread can be lost: its code did not return, took all its memory, or ended it. Then each of
 * its unfinished episodes is played again, one at a time; an episode that ends its thread again has failed.
 */
export function isolatedExecutor(context: RolloutContext, code: RecipeCode, threads: number): RolloutExecutor {
  const settings = { ...remoteSettings(context), code };
  /** Threads that play many episodes at a time. */
  const players: Player[] = [];
  /** Threads that play one episode at a time. The list `idle` has the threads that are free. */
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
  const playAlone = async (request: PlayRequest, listener: EpisodeListener | undefined): Promise<Episode> => {
    const player = idle.pop() ?? new Player(settings, context);
    careful.add(player);
    try {
      const played = await player.play(request, listener);
      idle.push(player);
      return played;
    } catch (error) {
      careful.delete(player);
      if (error instanceof PlayerGoneError) return failed(request, error);
      throw error;
    }
  };
  let next = 0;
  const play = async (request: PlayRequest, listener: EpisodeListener | undefined): Promise<Episode> => {
    try {
      return await playerAt(next++ % threads).play(request, listener);
    } catch (error) {
      if (!(error instanceof PlayerGoneError)) throw error;
      return oneEach(() => playAlone(request, listener));
    }
  };
  const endAll = async (reason?: unknown) => {
    const all = [...players.splice(0), ...careful];
    careful.clear();
    idle.length = 0;
    await Promise.all(all.map((player) => player.end(reason)));
  };

  const { watch: _, ...unwatched } = context; // no code of a team runs in this thread
  const playGroups = groupsByEpisode(unwatched, async ({ team: _, signal, listener, ...request }) => {
    const played = play(request, listener);
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

/** The record of an episode whose thread was lost. Its turns were lost with the thread. */
function failed({ task, sample }: PlayRequest, { reason, message }: PlayerGoneError): Episode {
  return { task, sample, turns: [], outcome: undefined, score: noScore, failure: { reason, message } };
}
