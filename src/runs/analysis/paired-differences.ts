/** The differences between an ablation's variants and its baseline, pair by pair. */
import type { RunSummary } from './ablation-summary.js';
import { type PairedInterval, pairedInterval } from './paired-interval.js';

/** The difference of the final score or of a metric, variant minus baseline, over the pairs in which both completed. */
export interface PairedDifference extends PairedInterval {
  readonly variant: string;
  readonly baseline: string;
  readonly pairs: number;
  /** The number of pairs in which the variant was better. */
  readonly better: number;
  /** `inside`: the interval contains 0, so no difference was shown. `unknown`: there are fewer than two pairs. */
  readonly verdict: 'higher' | 'lower' | 'inside' | 'unknown';
}

/**
 * The differences between each variant and the baseline.
 * @param pick Returns the number to compare: the score, or a metric that a run may lack
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

/** The differences of each metric that the runs have, by its name. */
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
