import type { Episode, Turn } from '../core/episode.js';
import { messageOf } from '../core/errors.js';
import { RandomStream } from '../core/random.js';
import { agentsOf } from './calls.js';
import { EpisodeFailure } from './episode-failure.js';
import { onAbort } from './on-abort.js';
import { OrderedReplies } from './ordered-replies.js';
import type { EpisodeRequest, RolloutContext } from './rollout-context.js';
import { noScore, rewardedTurns, scoreOf } from './score.js';

/**
 * Plays one episode and scores it. A failure inside (an error in the team's code, a prompt that does not fit, a sampler
 * that fails) ends the episode and is recorded in it, with the turns so far.
 *
 * Rejects only when the run is interrupted, with the signal's reason.
 */
export async function playEpisode<Data>(
  context: RolloutContext,
  request: EpisodeRequest<Data>,
): Promise<Episode<Data>> {
  const { team, task, sample, phase, step, signal: run } = request;
  run?.throwIfAborted();
  const controller = new AbortController();
  const { signal } = controller;
  const replies = new OrderedReplies();
  const turns: Turn[] = [];

  let fail: (reason: unknown) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {}); // the race below handles the rejection, unless the episode is over by then
  const removeListener = run && onAbort(run, () => fail(run.reason));
  const timeout = setTimeout(
    () => fail(new EpisodeFailure('timeout', `not over after ${context.timeoutMs} ms`)),
    context.timeoutMs,
  );

  try {
    const agents = agentsOf(context, { request, replies, turns, signal, fail });
    const random = new RandomStream('play', context.seed, phase, step, task.id, sample);
    const outcome = await Promise.race([
      failed,
      attempt('error', () => team.play({ task: task.data, agents, random, signal })),
    ]);
    replies.stop();
    const judged = { task: task.data, outcome, episode: { task, sample, turns }, signal };
    const [reward, success, metrics] = await Promise.race([
      failed,
      attempt('reward', () => Promise.all([team.reward(judged), team.success?.(judged), team.metrics?.(judged)])),
    ]);
    const score = scoreOf(reward, Object.keys(team.agents), { success, metrics });
    return { task, sample, turns: rewardedTurns(reward, turns), outcome, score };
  } catch (error) {
    run?.throwIfAborted();
    if (!(error instanceof EpisodeFailure)) throw error;
    const failure = { reason: error.reason, message: error.message };
    return { task, sample, turns, outcome: undefined, score: noScore, failure };
  } finally {
    replies.stop();
    clearTimeout(timeout);
    removeListener?.();
    controller.abort(); // no one awaits the calls that are still in flight
  }
}

/** Runs a team's function and turns anything that it throws into the episode's failure. */
async function attempt<T>(reason: 'error' | 'reward', run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new EpisodeFailure(reason, messageOf(error));
  }
}
