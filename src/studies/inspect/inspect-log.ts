/** What the rewards of a log say about its estimators, without any model: the numbers behind `drmas inspect`. */
import { comparableEstimators, usualEstimators } from '../../advantage/analysis/compared-estimators.js';
import type { Advantages } from '../../advantage/define-estimator.js';
import { type Estimator, openEstimator } from '../../advantage/estimators/index.js';
import type { Groups } from '../../advantage/groups.js';
import { inflationOf } from '../../advantage/inflation.js';
import type { TurnBatch } from '../../advantage/turn-batch.js';
import { ArgumentError } from '../../core/errors.js';
import type { Log } from './collect-turns.js';

export interface AgentFindings {
  readonly turns: number;
  readonly callsPerEpisode: number;
  readonly rewardMean: number;
  readonly rewardStd: number;
  /** Share of turns that paid a penalty. */
  readonly penalised: number;
  /** Lemma 4.2 by task-wide statistics over episodes (GRPO) and over turns; null where no group has a spread to judge by. */
  readonly inflation: { readonly byEpisodes: number | null; readonly byTurns: number | null };
}

/** What an estimator (or the trainer that wrote the log) makes of an agent's turns. */
export interface AdvantageFindings {
  readonly meanAbs: number;
  readonly maxAbs: number;
  /** Share of turns with advantage 0: they teach nothing. */
  readonly zero: number;
  /** Mean of A²: what the agent's gradient is scaled by, squared. */
  readonly secondMoment: number;
}

export interface GroupFindings {
  readonly count: number;
  /** By outcome: rewards before penalties. */
  readonly allRight: number;
  readonly allWrong: number;
  readonly mixed: number;
  /** Of those with equal outcomes: agents' own rewards differ; only penalties differ; nothing does. */
  readonly ownRewardsOnly: number;
  readonly penaltiesOnly: number;
  readonly nothing: number;
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
  /** By estimator, then by agent; `logged` is what the log's own trainer computed. */
  readonly estimators: Readonly<Record<string, Readonly<Record<string, AdvantageFindings>>>>;
  readonly notices: readonly string[];
}

/** @throws ArgumentError naming a turn that an estimator cannot be computed for */
export function inspect(log: Log, estimators: readonly Estimator[] = usualEstimators): Inspection {
  const { batch, logged } = log;
  const agents = agentNames(batch);
  const compared: [string, Advantages][] = estimators.map((one) => [one.type, openEstimator(one).compute(batch)]);
  if (logged !== undefined) compared.unshift(['logged', logged]);
  return {
    layout: log.layout,
    files: log.files,
    rows: log.rows,
    turns: batch.turns.length,
    episodes: batch.episodes.count,
    groups: groupFindings(log),
    agents: agentFindings(log, agents),
    estimators: Object.fromEntries(compared.map(([type, advantages]) => [type, perAgent(batch, agents, advantages)])),
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

/** In the order of the batch's agent groups. */
function agentNames({ agents, turns }: TurnBatch): string[] {
  const names = new Array<string>(agents.count);
  for (let i = turns.length - 1; i >= 0; i--) names[agents.of[i] as number] = turns[i]?.agent ?? '';
  return names;
}

function agentFindings({ batch, penalties }: Log, names: readonly string[]): Record<string, AgentFindings> {
  const rewards = moments(batch, batch.rewards);
  const penalised = moments(
    batch,
    Float64Array.from(penalties, (penalty) => (penalty > 0 ? 1 : 0)),
  );
  const byEpisodes = inflationOf(batch, openEstimator({ type: 'grpo' }));
  const byTurns = inflationOf(batch, openEstimator({ type: 'grpo-turn' }));
  return Object.fromEntries(
    names.map((name, k) => {
      const turns = rewards.count[k] as number;
      const mean = (rewards.sum[k] as number) / turns;
      const variance = Math.max(0, ((rewards.squares[k] as number) - turns * mean ** 2) / Math.max(1, turns - 1));
      const findings: AgentFindings = {
        turns,
        callsPerEpisode: turns / batch.episodes.count,
        rewardMean: mean,
        rewardStd: Math.sqrt(variance),
        penalised: (penalised.sum[k] as number) / turns,
        inflation: { byEpisodes: byEpisodes[name] ?? null, byTurns: byTurns[name] ?? null },
      };
      return [name, findings];
    }),
  );
}

function perAgent(batch: TurnBatch, names: readonly string[], advantages: Advantages) {
  const values = Float64Array.from(advantages as ArrayLike<number>);
  const { count, absolute, largest, zeros, squares } = moments(batch, values);
  return Object.fromEntries(
    names.map((name, k): [string, AdvantageFindings] => {
      const turns = count[k] as number;
      const part = (sums: Float64Array) => (sums[k] as number) / turns;
      const maxAbs = largest[k] as number;
      return [name, { meanAbs: part(absolute), maxAbs, zero: part(zeros), secondMoment: part(squares) }];
    }),
  );
}

/** Sums over each agent's turns. */
function moments({ agents }: TurnBatch, values: Float64Array) {
  const sums = () => new Float64Array(agents.count);
  const [count, sum, squares, absolute, largest, zeros] = [sums(), sums(), sums(), sums(), sums(), sums()];
  for (let i = 0; i < values.length; i++) {
    const k = agents.of[i] as number;
    const value = values[i] as number;
    const size = Math.abs(value);
    count[k] = (count[k] as number) + 1;
    sum[k] = (sum[k] as number) + value;
    squares[k] = (squares[k] as number) + value * value;
    absolute[k] = (absolute[k] as number) + size;
    if (size > (largest[k] as number)) largest[k] = size;
    if (value === 0) zeros[k] = (zeros[k] as number) + 1;
  }
  return { count, sum, squares, absolute, largest, zeros };
}

function groupFindings({ batch, penalties }: Log): GroupFindings {
  const { tasks, taskAgents, taskOfEpisode, turns, rewards } = batch;
  const before = Float64Array.from(rewards, (reward, i) => reward + (penalties[i] as number));
  const outcomes = Float64Array.from(turns, (turn, i) => turn.outcome ?? (before[i] as number));
  // Where a log has no outcome beside the agents' rewards, an outcome is compared with those of the same agent only.
  const hasOutcomes = turns.every((turn) => turn.outcome !== undefined);
  const taskOfTurn = tasks.of;
  const outcomeDiffers = differing(hasOutcomes ? tasks : taskAgents, outcomes, taskOfTurn, tasks.count);
  const beforeDiffers = differing(taskAgents, before, taskOfTurn, tasks.count);
  const rewardDiffers = differing(taskAgents, rewards, taskOfTurn, tasks.count);
  const total = new Float64Array(tasks.count);
  outcomes.forEach((outcome, i) => {
    const task = taskOfTurn[i] as number;
    total[task] = (total[task] as number) + outcome;
  });
  const counts = { allRight: 0, allWrong: 0, mixed: 0, ownRewardsOnly: 0, penaltiesOnly: 0, nothing: 0 };
  for (let task = 0; task < tasks.count; task++) {
    if (outcomeDiffers[task] === 1) {
      counts.mixed++;
      continue;
    }
    counts[(total[task] as number) > 0 ? 'allRight' : 'allWrong']++;
    counts[beforeDiffers[task] === 1 ? 'ownRewardsOnly' : rewardDiffers[task] === 1 ? 'penaltiesOnly' : 'nothing']++;
  }
  return { count: tasks.count, ...counts, singleEpisode: ones(taskOfEpisode), singleTurnOfAgent: ones(taskAgents) };
}

/** 1 for each task in which a group holds two different values; sums of rewards and penalties are compared up to rounding. */
function differing(groups: Groups, values: Float64Array, taskOf: Int32Array, tasks: number): Uint8Array {
  const first = new Float64Array(groups.count).fill(Number.NaN);
  const differs = new Uint8Array(tasks);
  for (let i = 0; i < values.length; i++) {
    const group = groups.of[i] as number;
    const value = values[i] as number;
    const known = first[group] as number;
    if (Number.isNaN(known)) first[group] = value;
    else if (Math.abs(value - known) > 1e-9 * Math.max(1, Math.abs(known))) differs[taskOf[i] as number] = 1;
  }
  return differs;
}

function ones(groups: Groups): number {
  const size = new Int32Array(groups.count);
  for (const group of groups.of) size[group] = (size[group] as number) + 1;
  return size.reduce((count, members) => count + (members === 1 ? 1 : 0), 0);
}
