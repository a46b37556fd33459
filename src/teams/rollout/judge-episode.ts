/** Scores a played episode: calls the team's `reward`, `success` and `metrics`, again if they throw. */

import { isSmall, plainCopy } from '@drmas/engine/errors';
import { onAbort } from '@drmas/engine/host';
import type { Episode, FailureReason } from '@drmas/engine/nouns';
import type { Reward, RewardContext, RewardValue } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';
import { requireNamed, share, valueText } from './reward-values.js';
import type { RolloutContext } from './rollout-context.js';
import type { RunningEpisode } from './running-episode.js';
import { lessCallCosts, rewardedTurns, scoreOf, withPartWeights } from './score.js';

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
  const { rewardRetries = 0 } = context;
  const outcomeOf = forEachTry(outcome, rewardRetries);
  const judge = async (nth: number) => {
    const judged = { task: data, outcome: outcomeOf(nth), episode: { task, sample, turns: played }, agents, signal };
    // A team that rewards groups has no reward of an episode. A reward that returns nothing is a mistake, not 0.
    // The functions are async, so that one that throws at once leaves no promise of another without a reader.
    const rewarded = async () => (team.reward === undefined ? 0 : team.reward(judged));
    const succeeded = async () => team.success?.(judged);
    const measured = async () => team.metrics?.(judged);
    return Promise.all([rewarded(), succeeded(), measured()]);
  };
  const [reward, success, metrics] = await perform('reward', () => repeated(judge, rewardRetries, signal));
  try {
    if (metrics !== undefined) requireNamed(metrics, 'the metrics', 'an object with a number for each name');
    // A branch that returns nothing would count by the reward alone.
    if (team.success !== undefined) share(success as RewardValue, 'the success');
    const judgement = { success, metrics: { ...running.log.metrics, ...metrics } };
    const earned = scoreOf(reward, Object.keys(team.agents), judgement);
    // Without a reward of the episode nothing is priced yet: its success would follow from a reward of 0.
    const score =
      team.reward === undefined
        ? earned
        : withPartWeights(lessCallCosts(earned, played, context.agents), context.partWeights);
    return { score, turns: [...rewardedTurns(reward, played), ...turns.slice(played.length)] };
  } catch (error) {
    // A value that a team returns may throw when it is read: a getter, a revoked proxy.
    throw EpisodeFailure.of('reward', error);
  }
}

/**
 * The rewards of a group's episodes by the team's `rewardGroup`, which is called again if it throws.
 * @throws EpisodeFailure with the reason 'reward'
 */
export async function judgeGroup(
  context: RolloutContext,
  { request: { team, judged = [] }, signal }: RunningEpisode,
  { task, agents }: Pick<RewardContext<unknown, unknown>, 'task' | 'agents'>,
  perform: Perform,
): Promise<readonly Reward[]> {
  const { rewardRetries = 0 } = context;
  const outcomes = judged.map(({ outcome }) => forEachTry(outcome, rewardRetries));
  const judge = async (nth: number) => {
    const episodes = Object.freeze(judged.map((episode, i) => ({ ...episode, outcome: outcomes[i]?.(nth) })));
    return team.rewardGroup?.({ task, episodes, agents, signal });
  };
  const rewards = await perform('reward', () => repeated(judge, rewardRetries, signal));
  if (!Array.isArray(rewards) || rewards.length !== judged.length) {
    const returned = Array.isArray(rewards) ? `${rewards.length} rewards` : valueText(rewards);
    const message = `rewardGroup returned ${returned}, expected a list with one for each of ${judged.length} episodes`;
    throw new EpisodeFailure('reward', message);
  }
  return rewards;
}

/** The outcome for each try of a reward: a try that failed may have changed it. */
function forEachTry<Outcome>(outcome: Outcome, retries: number): (nth: number) => Outcome {
  const unchanged = retries === 0 ? outcome : plainCopy(outcome);
  return (nth) => (nth === 1 ? outcome : plainCopy(unchanged));
}

/** Calls again what throws, after a pause if the network is the cause. */
async function repeated<T>(act: (nth: number) => Promise<T>, retries: number, signal: AbortSignal): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await act(tries);
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

/** How deep a forgotten `await` is looked for, and in how many values. */
const DEEPEST = 4;
const MOST_VALUES = 1_000;

/** The value that a function of the team returns: its name in messages, and the reason of a failure. */
const RETURNED = {
  play: { name: 'outcome', is: 'is', reason: 'error' },
  rewardGroup: { name: 'rewards', is: 'are', reason: 'reward' },
} as const;

/** @throws EpisodeFailure for a value that is too large, or that holds a promise: an `await` was forgotten */
export function checkReturned(by: keyof typeof RETURNED, value: unknown, maxOutcomeBytes: number): void {
  const { name, is, reason } = RETURNED[by];
  if (!isSmall(value, maxOutcomeBytes))
    throw new EpisodeFailure(reason, `the ${name} ${is} larger than training.maxOutcomeBytes, ${maxOutcomeBytes}`);
  const place = placeOfPromise(value, name);
  if (place !== undefined)
    throw new EpisodeFailure(reason, `${by} returned a promise as ${place}: \`await\` it before ${by} returns`);
}

/** The path of a promise in plain objects and lists, as code would write it. Getters are not called. */
function placeOfPromise(returned: unknown, name: string): string | undefined {
  const rest: { readonly value: unknown; readonly path: string; readonly depth: number }[] = [
    { value: returned, path: name, depth: 0 },
  ];
  try {
    for (let seen = 0; seen < MOST_VALUES; seen++) {
      const next = rest.shift();
      if (next === undefined) return undefined;
      const { value, path, depth } = next;
      if (value instanceof Promise) return path;
      if (typeof value !== 'object' || value === null || depth === DEEPEST) continue;
      const prototype: unknown = Object.getPrototypeOf(value);
      if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) continue;
      for (const [key, inner] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
        const at = Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`;
        if (typeof inner.value === 'object') rest.push({ value: inner.value, path: at, depth: depth + 1 });
      }
    }
  } catch {
    // A value that refuses to be read is written as a text.
  }
  return undefined;
}
