/** Scores a played episode: calls the team's `reward`, `success` and `metrics`, again if they throw. */
import { onAbort } from '../../base/async.js';
import type { Episode, FailureReason } from '../../base/nouns.js';
import type { RewardContext } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';
import { withPartWeights } from './part-weights.js';
import type { RolloutContext } from './rollout-context.js';
import type { RunningEpisode } from './running-episode.js';
import { lessCallCosts, rewardedTurns, scoreOf } from './score.js';

/** The pause before the first repetition after a network error; it doubles each time. */
const FIRST_PAUSE_MS = 500;

/** Runs a function of the team, and makes its errors failures with this reason. */
type Perform = <T>(reason: FailureReason, act: () => Promise<T>) => Promise<T>;

/**
 * The score of an episode, and its turns with their own rewards. If a function of the team throws, all of them are
 * called again, up to `rewardRetries` times.
 * @throws EpisodeFailure
 */
export async function judgeEpisode(
  context: RolloutContext,
  running: RunningEpisode,
  { task: data, outcome, agents }: Pick<RewardContext<unknown, unknown>, 'task' | 'outcome' | 'agents'>,
  perform: Perform,
): Promise<Pick<Episode, 'score' | 'turns'>> {
  const { turns, signal } = running;
  const { team, task, sample } = running.request;
  const played = Object.freeze([...turns]);
  const judged = { task: data, outcome, episode: { task, sample, turns: played }, agents, signal };
  const judge = async () => Promise.all([team.reward(judged), team.success?.(judged), team.metrics?.(judged)]);
  const [reward, success, metrics] = await perform('reward', () => repeated(judge, context.rewardRetries ?? 0, signal));
  try {
    const judgement = { success, metrics: { ...running.log.metrics, ...metrics } };
    const earned = scoreOf(reward, Object.keys(team.agents), judgement);
    const score = withPartWeights(lessCallCosts(earned, played, context.agents), context.partWeights);
    return { score, turns: [...rewardedTurns(reward, played), ...turns.slice(played.length)] };
  } catch (error) {
    // What a team returns may throw when it is read: a getter, a revoked proxy.
    throw EpisodeFailure.of('reward', error);
  }
}

/** Calls again what throws, after a pause if the network is the cause. */
async function repeated<T>(act: () => Promise<T>, retries: number, signal: AbortSignal): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await act();
    } catch (error) {
      if (signal.aborted) throw error;
      if (tries > retries) {
        const failure = EpisodeFailure.of('reward', error);
        throw tries === 1 ? failure : failure.with({ message: `${failure.message} (the last of ${tries} tries)` });
      }
      if (isOfNetwork(error)) await pause(FIRST_PAUSE_MS * 2 ** (tries - 1), signal);
    }
  }
}

/** Waits, at most until the signal fires. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    onAbort(signal, () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

const NETWORK_CODES = /^(E(CONN|HOST|NET|PIPE|TIMEDOUT|AI_AGAIN)|ENOTFOUND|UND_ERR_)/;

/** Whether a connection failed, or a server was busy or broken, according to an error or one of its causes. */
function isOfNetwork(error: unknown): boolean {
  try {
    if (typeof error !== 'object' || error === null) return false;
    const { code, status, statusCode = status, name, cause } = error as Record<string, unknown>;
    if (typeof code === 'string' && NETWORK_CODES.test(code)) return true;
    if (statusCode === 408 || statusCode === 429 || (typeof statusCode === 'number' && statusCode >= 500)) return true;
    return name === 'TimeoutError' || isOfNetwork(cause);
  } catch {
    return false;
  }
}
