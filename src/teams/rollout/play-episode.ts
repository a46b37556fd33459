import { isolated, messageOf } from '@drmas/engine/errors';
import { onAbort, waitMs } from '@drmas/engine/host';
import { RandomStream } from '@drmas/engine/math';
import type { Episode, FailureReason } from '@drmas/engine/nouns';
import { agentsOf } from './calls.js';
import { EpisodeFailure } from './episode-failure.js';
import { EpisodeLog } from './episode-log.js';
import { checkReturned, judgeEpisode, judgeGroup } from './judge-episode.js';
import { ofAgents } from './own-doing.js';
import type { EpisodeRequest, RolloutContext } from './rollout-context.js';
import { RunningEpisode } from './running-episode.js';
import { failedScore, noScore } from './score.js';

const CLEANUP_MS = 1_000;

/**
 * Plays one episode and scores it, or has the team reward the request's `judged` episodes. A failure inside (an error
 * in the team's code, a prompt that does not fit, a sampler that fails) ends the episode and is recorded in it, with
 * the turns so far.
 *
 * Rejects only when the run is interrupted, with the signal's reason.
 */
export async function playEpisode<Data>(
  context: RolloutContext,
  request: EpisodeRequest<Data>,
): Promise<Episode<Data>> {
  const { team, task, sample, phase, step, signal: run, listener } = request;
  const {
    inScope = (_, run) => run(),
    warn = () => {},
    maxOutcomeBytes = Number.POSITIVE_INFINITY,
    cleanupMs = CLEANUP_MS,
  } = context;
  run?.throwIfAborted();
  const running = new RunningEpisode(request as unknown as EpisodeRequest, new EpisodeLog(maxOutcomeBytes), warn);
  const { turns, signal, failed } = running;
  const removeListener = run && onAbort(run, () => running.fail(run.reason));
  let timeout: ReturnType<typeof setTimeout> | undefined;
  const startTime = () => {
    if (signal.aborted) return;
    const late = () => running.fail(new EpisodeFailure('timeout', `not over after ${context.timeoutMs} ms`));
    timeout = setTimeout(late, waitMs(context.timeoutMs));
  };
  if (request.ready === undefined) startTime();
  else void request.ready.then(startTime);
  let begun: Promise<unknown> = Promise.resolve();
  /** Runs a function of the team until it is done or the episode has failed. Its errors become failures. */
  const perform = <T>(reason: FailureReason, act: () => T | Promise<T>): Promise<T> => {
    const done = inScope(running, async () => (listener?.within === undefined ? act() : listener.within(act)));
    begun = done;
    return new Promise((resolve, reject) => {
      failed.catch(reject);
      done.then(resolve, (error: unknown) => reject(EpisodeFailure.of(reason, error)));
    });
  };

  let end = 'play and reward have returned';
  /** Whether `play` has returned an outcome, so that only the score is missing. */
  let scoring = false;
  try {
    const { asks, judges, counts } = agentsOf(context, running);
    const adapted = context.adaptAgents(running, asks, counts);
    const random = new RandomStream('play', context.seed, phase, step, task.id, sample);
    const data = isolated(task.data); // episodes share it, and a resumed run reads it anew
    if (request.judged !== undefined) {
      scoring = true;
      const rewards = await judgeGroup(context, running, { task: data, agents: judges }, perform);
      checkReturned('rewardGroup', rewards, maxOutcomeBytes);
      return { task, sample, turns, outcome: rewards, score: noScore, ...running.kept };
    }
    const log = (name: string, value: unknown) => running.log.add(name, value);
    const outcome = await perform('error', () =>
      team.play({ task: data, ...adapted, limits: team.limits ?? {}, random, signal, log }),
    ).catch((error: unknown) => {
      throw ofAgents(error, turns, { team, settings: context.agents }, running);
    });
    running.playReturned();
    checkReturned('play', outcome, maxOutcomeBytes);
    scoring = true;
    const judged = await judgeEpisode(context, running, { task: data, outcome, agents: judges }, perform);
    return { task, sample, outcome, ...judged, ...running.kept };
  } catch (error) {
    end = messageOf(error);
    running.end(end);
    // The episode's calls have been rejected. Let the team's `finally` and `using` release resources before continuing.
    if (!(await settlesWithin(begun, cleanupMs)))
      warn(
        `${running.name} has not returned ${cleanupMs} ms after its episode was over; nothing waits for it any more`,
      );
    run?.throwIfAborted();
    if (!(error instanceof EpisodeFailure)) throw error;
    const failure = scoring && error.reason !== 'reward' ? error.with({ scoring: true }) : error;
    const score = failedScore(turns, context);
    return { task, sample, turns, outcome: undefined, score, failure: failure.record, ...running.kept };
  } finally {
    clearTimeout(timeout);
    removeListener?.();
    running.end(end);
  }
}

async function settlesWithin(promise: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), waitMs(timeoutMs));
  });
  try {
    const settled = () => true;
    return await Promise.race([promise.then(settled, settled), late]);
  } finally {
    clearTimeout(timer);
  }
}
