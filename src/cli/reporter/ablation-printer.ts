/** The lines that an ablation shows while it goes on, and the comparison at its end. */

import type { PairedDifference, RunSummary, VariantSummary } from '../../report/analysis/ablation-summary.js';
import type { AblationResult } from '../../studies/ablation/ablate.js';
import { percent, significant, table, wrap } from './text-layout.js';

/** One line for a run that has ended. */
export function endedLine({ variant, seed, status, message, start, score, spikes }: RunSummary): string {
  const who = `${variant}, pair ${seed}`;
  if (status === 'failed') return `${who}: failed: ${message ?? ''}`;
  return `${who}: ${percent(start)} -> ${percent(score)}${spikes > 0 ? `, spikes ${spikes}` : ''}`;
}

export function ablationLines(result: AblationResult, width: number): string[] {
  const { runs, variants, differences, metricDifferences } = result;
  const failed = runs.filter(({ status }) => status === 'failed');
  return [
    ...variantTable(variants),
    '',
    ...agentTable(variants),
    '',
    ...metricTable(variants),
    ...differenceLines('the score, in points', { '': differences }, width, points),
    ...differenceLines('metrics', metricDifferences, width, plain),
    ...failed.flatMap((run) => wrap(endedLine(run), width)),
  ];
}

function variantTable(variants: readonly VariantSummary[]): string[] {
  const rows = variants.map(({ variant, runs, start, score, scoreSpread, reward, spikes }) => [
    variant,
    String(runs),
    ...(runs === 0
      ? ['-', '-', '-', '-', '-']
      : [
          percent(start),
          percent(score),
          runs < 2 ? '-' : (100 * scoreSpread).toFixed(1),
          reward.toFixed(3),
          significant(spikes),
        ]),
  ]);
  return [
    ...table([['means over seeds', 'runs', 'start', 'score', 'sd', 'reward', 'spikes'], ...rows]),
    'score: avg@k of the last evaluation; sd: its standard deviation over seeds;',
    'reward: mean over the training steps; spikes: a run',
  ];
}

function agentTable(variants: readonly VariantSummary[]): string[] {
  const rows = variants.flatMap(({ variant, agents }) =>
    Object.entries(agents).map(([agent, { norm, maxNorm, spikes, inflation, maxAbsAdvantage, invalid }]) => [
      `${variant}: ${agent}`,
      significant(norm),
      significant(maxNorm),
      significant(spikes),
      significant(inflation),
      significant(maxAbsAdvantage),
      (100 * invalid).toFixed(1),
    ]),
  );
  return [
    ...table([['agent', 'norm', 'max', 'spikes', 'infl.', 'max|A|', 'inv %'], ...rows]),
    'norm: of the gradient before clipping; infl.: predicted inflation of its',
    'second moment under shared statistics; max, max|A|: the largest of a run',
  ];
}

/** The metrics of the last evaluations, one column each. */
function metricTable(variants: readonly VariantSummary[]): string[] {
  const names = [...new Set(variants.flatMap(({ metrics }) => Object.keys(metrics)))].sort();
  if (names.length === 0) return [];
  const rows = variants.map(({ variant, metrics }) => [
    variant,
    ...names.map((name) => (metrics[name] === undefined ? '-' : significant(metrics[name]))),
  ]);
  return [...table([['last evaluation', ...names], ...rows]), ''];
}

/** The differences of one thing, or of several with their names in front; no lines where there are none. */
function differenceLines(
  what: string,
  compared: Readonly<Record<string, readonly PairedDifference[]>>,
  width: number,
  show: (difference: number) => string,
): string[] {
  const all = Object.values(compared).flat();
  if (all.length === 0 && !('' in compared)) return [];
  const level = all.find(({ interval }) => interval !== undefined)?.interval?.level;
  const title = `paired differences of ${what}${level === undefined ? '' : `, with ${Math.round(100 * level)} % intervals (t over pairs)`}`;
  const rows = Object.entries(compared).flatMap(([name, differences]) =>
    differences.map(({ variant, baseline, mean, interval, pairs, better, verdict }) => [
      `${name === '' ? '' : `${name}: `}${variant} - ${baseline}`,
      pairs === 0 ? '-' : show(mean),
      interval === undefined ? '' : `[${show(interval.low)}, ${show(interval.high)}]`,
      `better in ${better} of ${pairs}`,
      verdicts[verdict],
    ]),
  );
  const inside = all.some(({ verdict }) => verdict === 'inside');
  return [
    ...wrap(title, width),
    ...table(rows).map((line) => `  ${line}`),
    ...(inside ? ['inside its interval: the interval holds 0, so no difference was shown'] : []),
  ];
}

const verdicts: Readonly<Record<PairedDifference['verdict'], string>> = {
  higher: 'higher',
  lower: 'lower',
  inside: 'inside its interval',
  unknown: 'too few pairs',
};

const signed = (digits: (value: number) => string) => (value: number) => `${value < 0 ? '' : '+'}${digits(value)}`;

/** A fraction in points, with its sign. */
export const points = signed((fraction) => (100 * fraction).toFixed(1));

const plain = signed(significant);
