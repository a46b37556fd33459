/** The findings of `drmas inspect`: what the rewards of a log say about estimators, without any model. */
import { type AdvantageSizes, advantageSizes } from '../../advantage/analysis/advantage-sizes.js';
import { type AgentCalls, agentCalls } from '../../advantage/analysis/agent-calls.js';
import { type AgentRewards, agentRewards } from '../../advantage/analysis/agent-rewards.js';
import { comparableEstimators, usualEstimators } from '../../advantage/analysis/compared-estimators.js';
import { explainInflation } from '../../advantage/analysis/diagnosis.js';
import { type Column, countKinds, groupOutcomes, type KindCounts } from '../../advantage/analysis/outcome-groups.js';
import type { Advantages } from '../../advantage/define-estimator.js';
import { type Estimator, openEstimator } from '../../advantage/estimators/index.js';
import { type Groups, statisticsOf } from '../../advantage/groups.js';
import { predictedInflation } from '../../advantage/inflation.js';
import { ownShares } from '../../advantage/own-share.js';
import { ArgumentError } from '../../core/errors.js';
import type { Log } from './collect-turns.js';

/** An agent of a log. */
export interface AgentFindings extends Omit<AgentRewards, 'groupSpread'> {
  /** Share of turns that paid a penalty. */
  readonly penalised: number;
  /**
   * Lemma 4.2 by task-wide statistics over episodes (GRPO) and over turns; null where no group has a spread to judge
   * by.
   */
  readonly inflation: { readonly byEpisodes: number | null; readonly byTurns: number | null };
  /** How much of its scores by GRPO follows its own rewards, 0..1; null with too few turns to say. */
  readonly ownShare: number | null;
  readonly calls: AgentCalls;
  /** What its inflation under GRPO means, in a sentence. */
  readonly explanation: string;
}

/** The groups of a log by outcome: rewards before penalties. */
export interface GroupFindings extends KindCounts {
  readonly count: number;
  /** Groups of one episode, and (task, agent) pairs of one turn: nobody to compare with. */
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
  readonly agents: Readonly<Record<string, AgentFindings>>;
  /** Sizes by estimator, then by agent; `logged` are those that the trainer of the log computed. */
  readonly estimators: Readonly<Record<string, Readonly<Record<string, AdvantageSizes>>>>;
  readonly notices: readonly string[];
}

/** @throws ArgumentError naming a turn that an estimator cannot be computed for */
export function inspect(log: Log, estimators: readonly Estimator[] = usualEstimators): Inspection {
  const { batch, logged } = log;
  const compared: [string, Advantages][] = estimators.map((one) => [one.type, openEstimator(one).compute(batch)]);
  if (logged !== undefined) compared.unshift(['logged', logged]);
  return {
    layout: log.layout,
    files: log.files,
    rows: log.rows,
    turns: batch.turns.length,
    episodes: batch.episodes.count,
    groups: groupFindings(log),
    agents: agentFindings(log),
    estimators: Object.fromEntries(compared.map(([type, advantages]) => [type, advantageSizes(batch, advantages)])),
    notices: log.notices,
  };
}

/** The estimator of this name, if a log alone suffices for it. @throws ArgumentError listing those that there are */
export function comparableEstimator(name: string): Estimator {
  const estimator = comparableEstimators.find(({ type }) => type === name);
  if (estimator !== undefined) return estimator;
  const types = comparableEstimators.map(({ type }) => type).join(', ');
  throw new ArgumentError(`--estimator must be one of ${types}, got '${name}'`);
}

function agentFindings({ batch, penalties }: Log): Record<string, AgentFindings> {
  const rewards = agentRewards(batch);
  const paid = Float64Array.from(penalties, (penalty) => (penalty > 0 ? 1 : 0));
  const { mean: penalised } = statisticsOf(batch.agents, paid);
  const grpo = openEstimator({ type: 'grpo' });
  const byEpisodes = predictedInflation(batch, grpo);
  const shares = ownShares(batch, grpo);
  const byTurns = predictedInflation(batch, openEstimator({ type: 'grpo-turn' }));
  const called = agentCalls(batch);
  return batch.byAgent((k, name) => {
    const calls = called[name] as AgentCalls;
    const { turns, callsPerEpisode, rewardMean, rewardStd } = rewards[name] as AgentRewards;
    return {
      turns,
      callsPerEpisode,
      rewardMean,
      rewardStd,
      penalised: penalised[k] as number,
      inflation: { byEpisodes: byEpisodes[name] ?? null, byTurns: byTurns[name] ?? null },
      calls,
      ownShare: shares[name] ?? null,
      explanation: explainInflation(name, { inflation: byEpisodes[name], ownShare: shares[name], calls }),
    };
  });
}

function groupFindings({ batch, penalties }: Log): GroupFindings {
  const { tasks, taskAgents, taskOfEpisode, turns, rewards } = batch;
  const before = rewards.map((reward, i) => reward + (penalties[i] as number));
  const outcomes = Float64Array.from(turns, (turn, i) => turn.outcome ?? (before[i] as number));
  // Where a log has no outcome beside the agents' rewards, an outcome is compared with those of the same agent only.
  const hasOutcomes = turns.every((turn) => turn.outcome !== undefined);
  const columnFor = (values: Float64Array, peers: Groups): Column => ({ values, group: tasks.of, peers });
  const kinds = groupOutcomes(tasks.count, {
    outcome: columnFor(outcomes, hasOutcomes ? tasks : taskAgents),
    earned: columnFor(before, taskAgents),
    reward: columnFor(rewards, taskAgents),
  });
  return {
    count: tasks.count,
    ...countKinds(kinds),
    singleEpisode: groupsOfOne(taskOfEpisode),
    singleTurnOfAgent: groupsOfOne(taskAgents),
  };
}

function groupsOfOne(groups: Groups): number {
  const size = new Int32Array(groups.count);
  for (const group of groups.of) size[group] = (size[group] as number) + 1;
  return size.reduce((count, members) => count + (members === 1 ? 1 : 0), 0);
}
