/** The findings of `drmas inspect`: facts about estimators from the rewards of a log, without any model. */

import { ArgumentError, isObject, ownValue } from '@drmas/engine/errors';
import type { TurnRecord } from '@drmas/engine/nouns';
import type { Advantages } from '../../../method/advantage.js';
import {
  type AdvantageSizes,
  type AgentCalls,
  type AgentRewards,
  advantageSizes,
  agentCalls,
  agentRewards,
  type Column,
  columnOf,
  comparableEstimators,
  countKinds,
  explainInflation,
  type GroupOutcome,
  type Groups,
  groupOutcomes,
  type KindCounts,
  type MethodEstimator,
  openEstimator,
  ownShares,
  predictedInflation,
  statisticsOf,
  TurnBatch,
  usualEstimators,
} from '../../../method/advantage.js';
import { costOfCalls } from '../../../teams/rollout.js';
import type { Log } from './collect-turns.js';
import type { RewardRules, UntrainedEpisode } from './log-layouts.js';

export interface LoggedAgent extends Omit<AgentRewards, 'groupSpread'> {
  readonly penalised: number;
  /**
   * Lemma 4.2 by task-wide statistics over episodes (GRPO) and over turns. Null if no group has enough spread.
   */
  readonly inflation: { readonly byEpisodes: number | null; readonly byTurns: number | null };
  /** The share of its squared GRPO scores that its own rewards explain, 0..1. Null if there are too few turns. */
  readonly ownShare: number | null;
  readonly calls: AgentCalls;
  readonly explanation: string;
}

/** The groups of a log by outcome: rewards before penalties and the cost of calls. */
export interface GroupFindings extends KindCounts {
  readonly count: number;
  /** Groups of one episode, and (task, agent) pairs of one turn, which have nothing to be compared with. */
  readonly singleEpisode: number;
  readonly singleTurnOfAgent: number;
}

export interface Inspection {
  readonly layout: string;
  readonly files: number;
  readonly rows: number;
  readonly turns: number;
  readonly episodes: number;
  readonly groups: GroupFindings;
  readonly agents: Readonly<Record<string, LoggedAgent>>;
  /** Sizes by estimator, then by agent. `logged` are the advantages that the trainer of the log computed. */
  readonly estimators: Readonly<Record<string, Readonly<Record<string, AdvantageSizes>>>>;
  readonly notices: readonly string[];
}

/** A recipe's settings about the rewards in its run's episodes. @param resolved The recipe that the run has stored */
export function storedRules({ agents, training }: Readonly<Record<string, unknown>>): RewardRules {
  const number = (value: unknown) => (typeof value === 'number' ? value : 0);
  const priced = Object.entries(isObject(agents) ? agents : {}).map(([agent, settings]) => {
    const { callCost, tokenCost } = isObject(settings) ? settings : {};
    return [agent, { callCost: number(callCost), tokenCost: number(tokenCost) }] as const;
  });
  const { partWeights, failedEpisodes } = isObject(training) ? training : {};
  const weights = Object.entries(isObject(partWeights) ? partWeights : {}).map(
    ([part, weight]) => [part, number(weight)] as const,
  );
  return {
    costOf: costOfCalls(Object.fromEntries(priced), Object.fromEntries(weights)),
    failedEpisodes: failedEpisodes === 'zero' ? 'zero' : 'exclude',
  };
}

/** @throws ArgumentError with a turn for which an estimator cannot be computed */
export function inspect(log: Log, estimators: readonly MethodEstimator[] = usualEstimators): Inspection {
  const { batch, logged, untrained = [] } = log;
  const compared: [string, Advantages][] = estimators.map((one) => [one.type, advantagesByStep(log, one)]);
  if (logged !== undefined) compared.unshift(['logged', logged]);
  return {
    layout: log.layout,
    files: log.files,
    rows: log.rows,
    turns: batch.turns.length,
    episodes: batch.episodes.count + untrained.length,
    groups: groupFindings(log),
    agents: agentFindings(log),
    estimators: Object.fromEntries(compared.map(([type, advantages]) => [type, advantageSizes(batch, advantages)])),
    notices: log.notices,
  };
}

/** The advantages of each step by itself, in the order of the log. */
function advantagesByStep({ batch, steps }: Log, estimator: MethodEstimator): Advantages {
  const opened = openEstimator(estimator);
  const placesOf: number[][] = [];
  steps.forEach((step, i) => {
    const places = placesOf[step];
    if (places === undefined) placesOf[step] = [i];
    else places.push(i);
  });
  if (placesOf.length === 1) return opened.compute(batch);
  const all: (number | number[])[] = [];
  for (const places of placesOf) {
    const advantages = opened.compute(new TurnBatch(places.map((i) => batch.turns[i] as TurnRecord)));
    for (const [k, i] of places.entries()) all[i] = advantages[k] as number | number[];
  }
  return all;
}

/** The estimator of this name, if a log is enough to compute it. @throws ArgumentError with the possible names */
export function comparableEstimator(name: string): MethodEstimator {
  const estimator = comparableEstimators.find(({ type }) => type === name);
  if (estimator !== undefined) return estimator;
  const types = comparableEstimators.map(({ type }) => type).join(', ');
  throw new ArgumentError(`--estimator must be one of ${types}, got '${name}'`);
}

function agentFindings({ batch, penalties, untrained = [] }: Log): Record<string, LoggedAgent> {
  const rewards = agentRewards(batch, batch.episodes.count + untrained.length);
  const paid = Float64Array.from(penalties, (penalty) => (penalty > 0 ? 1 : 0));
  const { mean: penalised } = statisticsOf(batch.agents, paid);
  const grpo = openEstimator({ type: 'grpo' });
  const byEpisodes = predictedInflation(batch, grpo);
  const shares = ownShares(batch, grpo);
  const byTurns = predictedInflation(batch, openEstimator({ type: 'grpo-turn' }));
  const called = agentCalls(
    batch,
    untrained.map(({ outcome }) => outcome),
  );
  return batch.byAgent((k, name) => {
    const [inflation, ownShare] = [ownValue(byEpisodes, name), ownValue(shares, name)];
    const calls = called[name] as AgentCalls;
    const { turns, callsPerEpisode, rewardMean, rewardStd } = rewards[name] as AgentRewards;
    return {
      turns,
      callsPerEpisode,
      rewardMean,
      rewardStd,
      penalised: penalised[k] as number,
      inflation: { byEpisodes: inflation ?? null, byTurns: ownValue(byTurns, name) ?? null },
      calls,
      ownShare: ownShare ?? null,
      explanation: explainInflation(name, { inflation, ownShare, calls }),
    };
  });
}

function groupFindings({ batch, penalties, costs, success, untrained = [] }: Log): GroupFindings {
  const { tasks, taskAgents, taskOfEpisode, turns, rewards } = batch;
  const before = rewards.map((reward, i) => reward + (penalties[i] as number) + (costs?.reward[i] ?? 0));
  const outcomes = Float64Array.from(turns, ({ outcome }, i) =>
    outcome === undefined ? (before[i] as number) : outcome + (costs?.outcome[i] ?? 0),
  );
  // If a log has only the agents' rewards, an outcome is compared only with outcomes of the same agent.
  const hasOutcomes = turns.every((turn) => turn.outcome !== undefined);
  const columnFor = (values: Float64Array, peers: Groups): Column => ({ values, group: tasks.of, peers });
  const kinds = groupOutcomes(tasks.count, {
    outcome: columnFor(outcomes, hasOutcomes ? tasks : taskAgents),
    ...(success && { success: columnFor(success, tasks) }),
    earned: columnFor(before, taskAgents),
    reward: columnFor(rewards, taskAgents),
  });
  const compared = new Set(turns.map(({ task }) => task));
  const others = untrainedGroups(untrained.filter(({ task }) => !compared.has(task)));
  return {
    count: tasks.count + others.length,
    ...countKinds([...kinds, ...others]),
    singleEpisode: groupsOfOne(taskOfEpisode),
    singleTurnOfAgent: groupsOfOne(taskAgents),
  };
}

/** The groups of tasks for which only frozen agents acted. */
function untrainedGroups(episodes: readonly UntrainedEpisode[]): GroupOutcome[] {
  const tasks = new Map<string, UntrainedEpisode[]>();
  for (const episode of episodes) {
    const others = tasks.get(episode.task);
    if (others === undefined) tasks.set(episode.task, [episode]);
    else others.push(episode);
  }
  const groups = [...tasks.values()];
  const [outcome, success] = [columnOf(groups, ({ earned }) => earned), columnOf(groups, ({ success = 0 }) => success)];
  return groupOutcomes(groups.length, { outcome, success, reward: columnOf(groups, (each) => each.outcome) });
}

function groupsOfOne(groups: Groups): number {
  const size = new Int32Array(groups.count);
  for (const group of groups.of) size[group] = (size[group] as number) + 1;
  return size.reduce((count, members) => count + (members === 1 ? 1 : 0), 0);
}
