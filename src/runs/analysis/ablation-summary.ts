/** The summary of an ablation's runs, and the means of every variant. */

import type { AgentStep, EvaluationEvent, RunEvent, Spike, Step } from '@drmas/engine/events';
import { type RunSpending, runSpending, type Spending, type TokenCount, type TrainingBudget } from '@drmas/engine/host';
import { finite, largest, mean, meanOfFinite, meansByKey, standardDeviation } from '@drmas/engine/math';
import { isScored, rewardsOf } from '@drmas/engine/nouns';

/** An agent's means over a few steps. Norms are before clipping. What no step has measured is not a number. */
export interface AgentStage {
  /** When the agent is called, like `calls` of a step's event. */
  readonly share: number;
  readonly success: number;
  readonly overall: number;
  /** The mean over the agent's turns. */
  readonly reward: number;
  readonly invalid: number;
  readonly entropy: number;
  readonly norm: number;
  readonly inflation: number;
  /** The share of its squared shared scores that its own rewards explain. */
  readonly ownShare: number;
}

/** An agent's means over a run's steps. `maxNorm` and `maxAbsAdvantage` are maxima. Norms are before clipping. */
export interface AgentSummary {
  readonly turns: number;
  readonly invalid: number;
  readonly norm: number;
  readonly maxNorm: number;
  readonly spikes: number;
  readonly inflation: number;
  readonly maxAbsAdvantage: number;
  /** The first and the last tenth of the steps. */
  readonly first: AgentStage;
  readonly last: AgentStage;
}

/** The course of a run's figures. */
export interface Curve {
  /** The mean reward of each training step. Not a number for a step in which each reward failed. */
  readonly rewards: readonly number[];
  /** avg@k of each evaluation, 0..1. */
  readonly evaluations: readonly { readonly step: number; readonly score: number }[];
}

export interface ComparedRun {
  readonly name: string;
  readonly variant: string;
  readonly seed: number;
}

/** A run of an ablation: how it ended, and its scores. */
export interface RunSummary extends ComparedRun {
  readonly status: 'completed' | 'failed';
  /** The reason of its failure. */
  readonly message?: string;
  /** avg@k of the first evaluation that has a score, and of the last evaluation, 0..1. Absent if none has one. */
  readonly start?: number;
  readonly score?: number;
  /**
   * Present if the reward of some episodes of the last evaluation failed: their number, and the number of all episodes.
   * `score`, `metrics` and `rewards` leave them out.
   */
  readonly unscored?: number;
  readonly episodes?: number;
  /** The last evaluation's metrics, if the team has any. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** The last evaluation's rewards of the team and of agents, with their named parts. */
  readonly rewards?: Readonly<Record<string, number>>;
  /** Tokens, seconds and cost of steps and evaluations. */
  readonly spending?: RunSpending;
  /** The cost of its training. Absent if the log is incomplete. */
  readonly budget?: TrainingBudget;
  /** Mean of the training steps' rewards. Not a number if no step has one. */
  readonly reward: number;
  /** Number of spikes and dropped updates of all agents and policies. */
  readonly spikes: number;
  readonly curve: Curve;
  readonly agents: Readonly<Record<string, AgentSummary>>;
}

/**
 * A variant of an ablation: means over its completed runs that have a value. Its curve has the rewards up to the end of
 * the shortest run, and the evaluations of the steps in which each run has a score.
 */
export interface VariantSummary
  extends Pick<RunSummary, 'variant' | 'start' | 'score' | 'budget' | 'reward' | 'spikes' | 'curve' | 'agents'> {
  /** The number of completed runs. The means are over these. */
  readonly runs: number;
  readonly failed: number;
  /** Standard deviation of the score over seeds. Not a number with less than two scores. */
  readonly scoreSpread: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly rewards: Readonly<Record<string, number>>;
  /** Means over the runs. Empty if their logs do not contain it. */
  readonly spending: readonly VariantSpending[];
}

/** The mean cost of a run, for one agent or for all agents together. */
export interface VariantSpending {
  /** Absent for all of them together. */
  readonly agent?: string;
  /** Tokens of an episode. */
  readonly tokens: TokenCount;
  /** Cost of a run, if policies have a price. */
  readonly cost?: number;
  /** Seconds of a run, for all agents together. */
  readonly seconds?: number;
}

export function summariseRun(
  { name, variant, seed }: ComparedRun,
  events: readonly RunEvent[],
  failure?: string,
): RunSummary {
  const steps = events.filter((event): event is Step & RunEvent => event.type === 'step');
  const evaluations = events.filter((event): event is EvaluationEvent & RunEvent => event.type === 'evaluation');
  const spikes = events.filter(
    (event): event is Spike & RunEvent => event.type === 'spike' || event.type === 'skipped',
  );
  const rewards = steps.map(({ reward }) => reward?.mean ?? Number.NaN);
  const scored = evaluations.filter(isScored);
  const end = evaluations.at(-1);
  const last = end && isScored(end) ? end : undefined;
  const [first] = scored;
  const { unscored, episodes = 0 } = end ?? {};
  const spending = runSpending(events);
  const trained = ({ agents }: Step) => Object.keys(agents).filter((agent) => agents[agent]?.frozen !== true);
  const agents = [...new Set(steps.flatMap(trained))].sort();
  return {
    name,
    variant,
    seed,
    status: failure === undefined ? 'completed' : 'failed',
    ...(failure === undefined ? {} : { message: failure }),
    ...(first && { start: first.averageAtK }),
    ...(unscored === undefined ? {} : { unscored, episodes }),
    ...(last && { score: last.averageAtK, ...(last.metrics && { metrics: last.metrics }), rewards: rewardsOf(last) }),
    ...(spending === undefined ? {} : { spending }),
    reward: meanOfFinite(rewards),
    spikes: spikes.length,
    curve: {
      rewards,
      evaluations: scored.map(({ step, averageAtK }) => ({ step, score: averageAtK })),
    },
    agents: Object.fromEntries(
      agents.map((agent) => {
        const readings = steps.flatMap((step) => step.agents[agent] ?? []);
        const few = Math.ceil(readings.length / 10);
        return [
          agent,
          {
            ...summariseAgent(readings),
            spikes: spikes.filter((spike) => spike.agent === agent).length,
            first: stageOf(readings.slice(0, few)),
            last: stageOf(readings.slice(-few)),
          },
        ];
      }),
    ),
  };
}

function summariseAgent(steps: readonly AgentStep[]): Omit<AgentSummary, 'spikes' | 'first' | 'last'> {
  const norms = steps.map((step) => step.gradientNorm);
  return {
    turns: turnsOf(steps),
    invalid: overTurns(steps, ({ invalid }) => invalid),
    norm: meanOfFinite(norms),
    maxNorm: maxOfFinite(norms),
    inflation: meanOfFinite(steps.map((step) => step.inflation.predicted)),
    maxAbsAdvantage: Math.max(0, largest(steps.map((step) => step.maxAbsAdvantage))),
  };
}

function stageOf(steps: readonly AgentStep[]): AgentStage {
  const shares = steps.flatMap(({ inflation }) => inflation.ownShare ?? []);
  const calls = steps.flatMap((step) => step.calls ?? []);
  return {
    share: meanOfFinite(calls.map(({ share }) => share)),
    success: meanOfFinite(calls.map(({ success }) => success)),
    overall: meanOfFinite(calls.map(({ overall }) => overall)),
    reward: rewardOverTurns(steps),
    invalid: overTurns(steps, ({ invalid }) => invalid),
    // Of all turns. The entropy of an update is of the turns that differ from their siblings.
    entropy: meanOfFinite(steps.flatMap(({ sampledEntropy, entropy }) => sampledEntropy ?? entropy ?? [])),
    norm: meanOfFinite(steps.map(({ gradientNorm }) => gradientNorm)),
    inflation: meanOfFinite(steps.map(({ inflation }) => inflation.predicted)),
    ownShare: meanOfFinite(shares),
  };
}

/** Not a number if there is no finite number. */
function maxOfFinite(values: readonly number[]): number {
  const measured = finite(values);
  return measured.length === 0 ? Number.NaN : largest(measured);
}

const turnsOf = (steps: readonly AgentStep[]) => steps.reduce((sum, { turns }) => sum + turns, 0);

/**
 * The mean over all turns of the steps, from the mean of each step that has one. Not a number if no step has one.
 * @param countOf The number of turns that the mean of a step is over
 */
export function overTurns(
  steps: readonly AgentStep[],
  pick: (step: AgentStep) => number | undefined,
  countOf = ({ turns }: AgentStep): number => turns,
): number {
  const measured = steps.flatMap((step) => {
    const value = pick(step);
    return value === undefined ? [] : [{ value, count: countOf(step) }];
  });
  const count = measured.reduce((sum, each) => sum + each.count, 0);
  return measured.reduce((sum, each) => sum + each.value * each.count, 0) / count;
}

/** The mean reward of an agent over all turns that have a reward: turns of failed episodes may have none. */
export const rewardOverTurns = (steps: readonly AgentStep[]): number =>
  overTurns(
    steps,
    ({ rewardMean }) => rewardMean,
    ({ turns, rewardedTurns = turns }) => rewardedTurns,
  );

export function summariseVariants(runs: readonly RunSummary[], variants: readonly string[]): VariantSummary[] {
  return variants.map((variant) => {
    const ofVariant = runs.filter((run) => run.variant === variant);
    const done = ofVariant.filter(({ status }) => status === 'completed');
    const over = (pick: (run: RunSummary) => number) => meanOfFinite(done.map(pick));
    const [starts, scores] = [done.flatMap(({ start }) => start ?? []), done.flatMap(({ score }) => score ?? [])];
    const agents = [...new Set(done.flatMap((run) => Object.keys(run.agents)))].sort();
    return {
      variant,
      runs: done.length,
      failed: ofVariant.length - done.length,
      ...(starts.length > 0 && { start: mean(starts) }),
      ...(scores.length > 0 && { score: mean(scores) }),
      scoreSpread: scores.length < 2 ? Number.NaN : standardDeviation(scores),
      metrics: meansByKey(done.map(({ metrics = {} }) => metrics)),
      rewards: meansByKey(done.map(({ rewards = {} }) => rewards)),
      spending: meanSpending(done.flatMap(({ spending }) => spending ?? [])),
      ...meanBudget(done.flatMap(({ budget }) => budget ?? [])),
      reward: over(({ reward }) => reward),
      spikes: over(({ spikes }) => spikes),
      curve: meanCurve(done.map(({ curve }) => curve)),
      agents: Object.fromEntries(
        agents.map((agent) => [agent, meanAgent(done.flatMap((run) => run.agents[agent] ?? []))]),
      ),
    };
  });
}

function meanSpending(runs: readonly RunSpending[]): VariantSpending[] {
  if (runs.length === 0) return [];
  const row = (of: (run: RunSpending) => Spending | undefined): Omit<VariantSpending, 'agent'> => {
    const known = runs.flatMap((run) => ({ episodes: Math.max(1, run.episodes), spent: of(run) }));
    const over = (pick: (tokens: TokenCount) => number) =>
      mean(known.map(({ episodes, spent }) => (spent === undefined ? 0 : pick(spent.tokens) / episodes)));
    // An agent that a run does not call costs nothing there.
    const costs = known.some(({ spent }) => spent?.cost !== undefined)
      ? known.map(({ spent }) => spent?.cost ?? 0)
      : [];
    return {
      tokens: {
        read: over(({ read }) => read),
        written: over(({ written }) => written),
        trained: over(({ trained }) => trained),
      },
      ...(costs.length === 0 ? {} : { cost: mean(costs) }),
    };
  };
  const agents = [...new Set(runs.flatMap((run) => Object.keys(run.agents)))].sort();
  return [
    ...agents.map((agent) => ({ agent, ...row((run) => run.agents[agent]) })),
    { ...row((run) => run), seconds: mean(runs.map(({ seconds }) => seconds)) },
  ];
}

function meanBudget(budgets: readonly TrainingBudget[]): Pick<VariantSummary, 'budget'> {
  const [first] = budgets;
  if (first === undefined) return {};
  const { operations: _, ...tokens } = meanOf(
    budgets.map(({ operations = 0, ...tokens }) => ({ operations, ...tokens })),
  );
  const known = budgets.flatMap(({ operations }) => operations ?? []);
  return { budget: { ...tokens, ...(known.length < budgets.length ? {} : { operations: mean(known) }) } };
}

function meanCurve(curves: readonly Curve[]): Curve {
  const rewards = together(curves.map((curve) => curve.rewards));
  // An evaluation without a score is absent, so that places in the lists say nothing: the steps do.
  const [first, ...others] = curves.map(({ evaluations }) => new Map(evaluations.map((of) => [of.step, of.score])));
  const shared = [...(first ?? [])].filter(([step]) => others.every((scores) => scores.has(step)));
  return {
    rewards: rewards.map(meanOfFinite),
    evaluations: shared.map(([step, score]) => ({
      step,
      score: mean([score, ...others.map((scores) => scores.get(step) as number)]),
    })),
  };
}

/** The mean at each position of the lists, up to the length of the shortest. */
function together<T>(lists: readonly (readonly T[])[]): T[][] {
  const length = lists.length === 0 ? 0 : Math.min(...lists.map((list) => list.length));
  return Array.from({ length }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1)));
}

/** The means of the runs that have measured a number. */
const meanOf = <T extends Record<keyof T, number>>(all: readonly T[]): T => {
  const [first] = all as readonly Readonly<Record<string, number>>[];
  const means = Object.keys(first ?? {}).map((key) => [key, meanOfFinite(all.map((one) => one[key as keyof T]))]);
  return Object.fromEntries(means) as T;
};

function meanAgent(agents: readonly AgentSummary[]): AgentSummary {
  return {
    ...meanOf(agents.map(({ first: _, last: __, ...numbers }) => numbers)),
    first: meanOf(agents.map(({ first }) => first)),
    last: meanOf(agents.map(({ last }) => last)),
  };
}
