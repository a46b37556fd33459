import { type GroupStatistics, type Groups, parentsOf, statisticsOf } from './groups.js';
import type { Settings, Singleton } from './named-choices.js';
import { advanceStatistics, type RunningStatistics, runningStatistics } from './running-statistics.js';
import type { TurnBatch } from './turn-batch.js';

/**
 * The members of a comparison:
 * - `episodes`: the task's episodes, each with its score;
 * - `turns`: all turns of the task;
 * - `agent`: the turns of (task, agent);
 * - `agent-step`: the turns of (task, agent, step);
 * - `agent-episodes`: the episodes of (task, agent), each with the mean of the agent's rewards there;
 * - `chains`: all chains of the task, each with the mean of its turns' rewards;
 * - `agent-chains`: the chains of (task, agent), likewise;
 * - `batch-agent`: the turns of the agent in the whole step, whatever their task.
 */
export type Pool = SharedPool | 'agent' | 'agent-step' | 'agent-episodes' | 'agent-chains' | 'batch-agent';

/** The pools whose statistics all agents of a task share. */
export type SharedPool = 'episodes' | 'chains' | 'turns';

export const isShared = (pool: Pool): pool is SharedPool =>
  pool === 'episodes' || pool === 'chains' || pool === 'turns';

/** Whether the members of a pool have the scores that the rule normalises, and no other numbers. */
export const hasScoresOf = (pool: Pool): boolean =>
  pool !== 'agent-episodes' && pool !== 'chains' && pool !== 'agent-chains';

/** One point in the space of group-based estimators: advantage = (score - mean) / (spread + epsilon). */
export interface Rule {
  /**
   * The number that is normalised: the episode's score, the same for all of its turns; the mean of the agent's rewards
   * in the episode or in the chain, the same for all of its turns there; or the turn's own reward.
   */
  readonly score: 'episode' | 'agent-episode' | 'chain' | 'turn';
  readonly mean: Pool;
  readonly spread: Pool | 'none';
  /** The mean leaves the turn itself out: the difference is scaled by n / (n - 1). */
  readonly leaveOneOut?: boolean;
  /**
   * The pool whose statistics all agents would share, for the predicted inflation. Default: the pool of the mean if all
   * agents share it, else the task's episodes.
   */
  readonly shared?: SharedPool;
}

/**
 * One advantage a turn, by the rule. Linear in the number of turns.
 * @param state The running statistics from before this step, for `singleton: 'ema'`
 */
export function normalise(
  batch: TurnBatch,
  rule: Rule,
  settings: Settings,
  state: RunningStatistics = {},
): Float64Array {
  const scores = scoresOf(batch, rule.score, settings);
  const compare = (pool: Pool) => {
    const members = poolOf(batch, pool, scores, settings);
    const { singleton } = settings;
    return statisticsOfPool(members, singleton, singleton === 'ema' ? runningStatistics(members, state) : undefined);
  };
  const mean = compare(rule.mean);
  const spread = rule.spread === 'none' ? undefined : rule.spread === rule.mean ? mean : compare(rule.spread);
  return measure(scores, { mean, spread, leaveOneOut: rule.leaveOneOut === true }, settings);
}

/** The running statistics after a step, for a rule with `singleton: 'ema'`. Empty for other rules. */
export function advanceNormalise(
  batch: TurnBatch,
  rule: Rule,
  settings: Settings,
  state: RunningStatistics,
): RunningStatistics {
  if (settings.singleton !== 'ema') return {};
  const scores = scoresOf(batch, rule.score, settings);
  const pools = new Set(rule.spread === 'none' ? [rule.mean] : [rule.mean, rule.spread]);
  return [...pools].reduce((sofar, pool) => advanceStatistics(poolOf(batch, pool, scores, settings), sofar), state);
}

/** Measures scores against the statistics of their groups. All group-based estimators use this loop. */
export function measure(
  scores: Float64Array,
  against: {
    readonly mean: PoolStatistics;
    readonly spread: PoolStatistics | undefined;
    readonly leaveOneOut?: boolean;
  },
  { epsilon, minimumSpread }: Pick<Settings, 'epsilon' | 'minimumSpread'>,
): Float64Array {
  const { mean, spread, leaveOneOut } = against;
  const advantages = new Float64Array(scores.length);
  for (let i = 0; i < scores.length; i++) {
    const m = mean.of[i] as number;
    if (mean.silent[m] === 1) continue;
    let advantage = (scores[i] as number) - (mean.mean[m] as number);
    const n = mean.size[m] as number;
    if (leaveOneOut === true && n > 1) advantage *= n / (n - 1);
    if (spread !== undefined) {
      const s = spread.of[i] as number;
      const divisor = (spread.spread[s] as number) + epsilon;
      // Without an epsilon, a spread of exactly 0 cannot divide.
      if (spread.silent[s] === 1 || (spread.spread[s] as number) < minimumSpread || divisor === 0) continue;
      advantage /= divisor;
    }
    advantages[i] = advantage;
  }
  return advantages;
}

export interface PoolStatistics extends GroupStatistics {
  /** The group of each turn. */
  readonly of: Int32Array; // [turns]
  /** 1 where a group's turns get advantage 0 because it has one member. */
  readonly silent: Uint8Array; // [groups]
}

/**
 * The statistics of each group. A group of one gets replacements, according to `singleton`.
 * @param running The replacements for groups of one, by their wider group. Default: the statistics of the step itself
 */
export function statisticsOfPool(
  { turns, members, values, wider }: PoolMembers,
  singleton: Singleton,
  running?: GroupStatistics,
): PoolStatistics {
  const { size, mean, spread } = statisticsOf(members, values);
  const silent = new Uint8Array(members.count);
  const fallback = running ?? (singleton === 'batch' ? statisticsOf(wider, values) : undefined);
  const widerOf = fallback === undefined ? undefined : parentsOf(members, wider).of;
  for (let g = 0; g < members.count; g++) {
    if (size[g] !== 1) continue;
    if (singleton === 'raw') {
      mean[g] = 0;
      spread[g] = 1;
      continue;
    }
    const w = widerOf?.[g];
    if (fallback === undefined || w === undefined || fallback.size[w] === 1) {
      silent[g] = 1;
      continue;
    }
    mean[g] = fallback.mean[w] as number;
    spread[g] = fallback.spread[w] as number;
  }
  return { of: turns, size, mean, spread, silent };
}

export interface PoolMembers {
  readonly turns: Int32Array;
  /** Turns or episodes, sorted into the same groups. */
  readonly members: Groups;
  readonly values: Float64Array; // [members]
  /** The same members in wider groups, whose statistics a group of one gets instead. */
  readonly wider: Groups;
  /** The names of the wider groups. Running statistics are stored under these names. */
  readonly names?: readonly string[];
}

/** @param scores The number to normalise, one a turn. The pools of episodes use one score an episode instead */
export function poolOf(
  batch: TurnBatch,
  pool: Pool,
  scores: Float64Array,
  { episodeScore }: Pick<Settings, 'episodeScore'>,
): PoolMembers {
  const ofTurns = (members: Groups) => ({ turns: members.of, members, values: scores });
  const ofAgents = (of: Groups = batch.agents) => ({
    wider: of,
    names: batch.agentNames.map((agent) => `${pool} ${agent}`),
  });
  switch (pool) {
    case 'episodes': {
      const members = batch.taskOfEpisode;
      const wider = { of: new Int32Array(members.of.length), count: 1 };
      return { turns: batch.tasks.of, members, values: batch.episodeScores(episodeScore), wider, names: [pool] };
    }
    case 'turns':
      return { ...ofTurns(batch.tasks), wider: batch.all, names: [pool] };
    case 'agent':
      return { ...ofTurns(batch.taskAgents), ...ofAgents() };
    case 'agent-step':
      return { ...ofTurns(batch.taskAgentSteps), ...ofAgents() };
    case 'agent-episodes': {
      const { agentEpisodes, taskAgents, agents, rewards } = batch;
      const members = parentsOf(agentEpisodes, taskAgents);
      const values = statisticsOf(agentEpisodes, rewards).mean;
      return { turns: taskAgents.of, members, values, ...ofAgents(parentsOf(agentEpisodes, agents)) };
    }
    case 'chains': {
      const members = parentsOf(batch.chains, batch.tasks);
      const wider = { of: new Int32Array(batch.chains.count), count: 1 };
      return { turns: batch.tasks.of, members, values: batch.chainScores, wider, names: [pool] };
    }
    case 'agent-chains': {
      const { chains, chainScores, taskAgents, agents } = batch;
      const members = parentsOf(chains, taskAgents);
      return { turns: taskAgents.of, members, values: chainScores, ...ofAgents(parentsOf(chains, agents)) };
    }
    case 'batch-agent':
      return { ...ofTurns(batch.agents), ...ofAgents() };
  }
}

export function scoresOf(batch: TurnBatch, score: Rule['score'], { episodeScore }: Settings): Float64Array {
  if (score === 'turn') return batch.rewards;
  if (score === 'chain') return Float64Array.from(batch.chains.of, (chain) => batch.chainScores[chain] as number);
  const groups = score === 'episode' ? batch.episodes : batch.agentEpisodes;
  const scores = score === 'episode' ? batch.episodeScores(episodeScore) : statisticsOf(groups, batch.rewards).mean;
  return Float64Array.from(groups.of, (group) => scores[group] as number);
}
