/** The summary of an ablation's runs: means of every variant, and paired differences to one of them. */
import type { AgentStep, EvaluationEvent, RunEvent, Spike, Step } from '../../core/events.js';
import { finite, mean, meansByKey, standardDeviation } from '../../core/statistics.js';
import type { PlannedRun } from './ablation-plan.js';
import { type PairedInterval, pairedInterval } from './paired-interval.js';

/** An agent's means over a run's steps; `maxNorm` and `maxAbsAdvantage` are the largest. Norms are before clipping. */
export interface AgentSummary {
  readonly turns: number;
  readonly invalid: number;
  readonly norm: number;
  readonly maxNorm: number;
  readonly spikes: number;
  readonly inflation: number;
  readonly maxAbsAdvantage: number;
}

export interface RunSummary extends Pick<PlannedRun, 'name' | 'variant' | 'seed'> {
  readonly status: 'completed' | 'failed';
  /** The reason of its failure. */
  readonly message?: string;
  /** avg@k of the first and of the last evaluation, 0..1. */
  readonly start: number;
  readonly score: number;
  /** The last evaluation's metrics, where the team measures any. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** Mean of the training steps' rewards. */
  readonly reward: number;
  /** Number of spikes and dropped updates of all agents and policies. */
  readonly spikes: number;
  readonly agents: Readonly<Record<string, AgentSummary>>;
}

export interface VariantSummary {
  readonly variant: string;
  /** Number of completed runs, over which the means are taken. */
  readonly runs: number;
  readonly failed: number;
  readonly start: number;
  readonly score: number;
  /** Standard deviation of the score over seeds. */
  readonly scoreSpread: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly reward: number;
  readonly spikes: number;
  /** Means over the runs, of maxima too. */
  readonly agents: Readonly<Record<string, AgentSummary>>;
}

/** The difference of the final score or of a metric, variant minus baseline, over the pairs that both completed. */
export interface PairedDifference extends PairedInterval {
  readonly variant: string;
  readonly baseline: string;
  readonly pairs: number;
  /** Number of pairs in which the variant was better. */
  readonly better: number;
  /** `inside`: the interval holds 0, so no difference was shown. `unknown`: there are fewer than two pairs. */
  readonly verdict: 'higher' | 'lower' | 'inside' | 'unknown';
}

/** Summarises a run from its events. */
export function summariseRun(
  { name, variant, seed }: Pick<PlannedRun, 'name' | 'variant' | 'seed'>,
  events: readonly RunEvent[],
  failure?: string,
): RunSummary {
  const steps = events.filter((event): event is Step & RunEvent => event.type === 'step');
  const evaluations = events.filter((event): event is EvaluationEvent & RunEvent => event.type === 'evaluation');
  const spikes = events.filter(
    (event): event is Spike & RunEvent => event.type === 'spike' || event.type === 'skipped',
  );
  const { metrics } = evaluations.at(-1) ?? {};
  const trained = ({ agents }: Step) => Object.keys(agents).filter((agent) => agents[agent]?.frozen !== true);
  const agents = [...new Set(steps.flatMap(trained))].sort();
  return {
    name,
    variant,
    seed,
    status: failure === undefined ? 'completed' : 'failed',
    ...(failure === undefined ? {} : { message: failure }),
    start: evaluations[0]?.averageAtK ?? 0,
    score: evaluations.at(-1)?.averageAtK ?? 0,
    ...(metrics === undefined ? {} : { metrics }),
    reward: mean(steps.map((step) => step.reward.mean)),
    spikes: spikes.length,
    agents: Object.fromEntries(
      agents.map((agent) => {
        const readings = steps.flatMap((step) => step.agents[agent] ?? []);
        return [agent, summariseAgent(readings, spikes.filter((spike) => spike.agent === agent).length)];
      }),
    ),
  };
}

function summariseAgent(steps: readonly AgentStep[], spikes: number): AgentSummary {
  const turns = steps.reduce((sum, step) => sum + step.turns, 0);
  const norms = finite(steps.map((step) => step.gradientNorm));
  return {
    turns,
    invalid: steps.reduce((sum, step) => sum + step.invalid * step.turns, 0) / Math.max(1, turns),
    norm: mean(norms),
    maxNorm: Math.max(0, ...norms),
    spikes,
    inflation: mean(steps.map((step) => step.inflation.predicted)),
    maxAbsAdvantage: Math.max(0, ...steps.map((step) => step.maxAbsAdvantage)),
  };
}

export function summariseVariants(runs: readonly RunSummary[], variants: readonly string[]): VariantSummary[] {
  return variants.map((variant) => {
    const ofVariant = runs.filter((run) => run.variant === variant);
    const done = ofVariant.filter(({ status }) => status === 'completed');
    const over = (pick: (run: RunSummary) => number) => mean(done.map(pick));
    const agents = [...new Set(done.flatMap((run) => Object.keys(run.agents)))].sort();
    return {
      variant,
      runs: done.length,
      failed: ofVariant.length - done.length,
      start: over(({ start }) => start),
      score: over(({ score }) => score),
      scoreSpread: standardDeviation(done.map(({ score }) => score)),
      metrics: meansByKey(done.map(({ metrics = {} }) => metrics)),
      reward: over(({ reward }) => reward),
      spikes: over(({ spikes }) => spikes),
      agents: Object.fromEntries(
        agents.map((agent) => [agent, meanAgent(done.flatMap((run) => run.agents[agent] ?? []))]),
      ),
    };
  });
}

function meanAgent(agents: readonly AgentSummary[]): AgentSummary {
  const over = (key: keyof AgentSummary) => mean(agents.map((agent) => agent[key]));
  return {
    turns: over('turns'),
    invalid: over('invalid'),
    norm: over('norm'),
    maxNorm: over('maxNorm'),
    spikes: over('spikes'),
    inflation: over('inflation'),
    maxAbsAdvantage: over('maxAbsAdvantage'),
  };
}

/**
 * The differences of every variant to the baseline.
 * @param pick What is compared: the score, or a metric that a run may lack
 */
export function pairedDifferences(
  runs: readonly RunSummary[],
  variants: readonly string[],
  baseline: string,
  pick: (run: RunSummary) => number | undefined = ({ score }) => score,
): PairedDifference[] {
  const scoreOf = (variant: string, seed: number) => {
    const run = runs.find((run) => run.variant === variant && run.seed === seed && run.status === 'completed');
    return run && pick(run);
  };
  const seeds = [...new Set(runs.map(({ seed }) => seed))];
  return variants
    .filter((variant) => variant !== baseline)
    .map((variant) => {
      const differences = seeds.flatMap((seed) => {
        const [score, other] = [scoreOf(variant, seed), scoreOf(baseline, seed)];
        return score === undefined || other === undefined ? [] : [score - other];
      });
      const interval = pairedInterval(differences);
      return {
        variant,
        baseline,
        pairs: differences.length,
        better: differences.filter((difference) => difference > 0).length,
        ...interval,
        verdict: verdictOf(interval),
      };
    });
}

/** The differences of every metric that the runs measured, by its name. */
export function metricDifferences(
  runs: readonly RunSummary[],
  variants: readonly string[],
  baseline: string,
): Record<string, PairedDifference[]> {
  const names = [...new Set(runs.flatMap(({ metrics = {} }) => Object.keys(metrics)))].sort();
  return Object.fromEntries(
    names.map((name) => [name, pairedDifferences(runs, variants, baseline, ({ metrics }) => metrics?.[name])]),
  );
}

function verdictOf({ interval }: PairedInterval): PairedDifference['verdict'] {
  if (interval === undefined) return 'unknown';
  if (interval.low > 0) return 'higher';
  return interval.high < 0 ? 'lower' : 'inside';
}
