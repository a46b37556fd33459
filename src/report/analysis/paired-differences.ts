/** How far the variants of an ablation are from one of them, pair by pair. */
import type { RunSummary } from './ablation-summary.js';
import { type PairedInterval, pairedInterval } from './paired-interval.js';

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
