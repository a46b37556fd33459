/** The lines that an ablation shows while it goes on, and the comparison at its end. */
import type { AblationResult } from '../../studies/ablation/ablate.js';
import type { PairedDifference, RunSummary, VariantSummary } from '../../studies/ablation/ablation-summary.js';
import { percent, significant, table, wrap } from './text-layout.js';

/** One line for a run that has ended. */
export function endedLine({ variant, seed, status, message, start, score, spikes }: RunSummary): string {
  const who = `${variant}, pair ${seed}`;
  if (status === 'failed') return `${who}: failed: ${message ?? ''}`;
  return `${who}: ${percent(start)} -> ${percent(score)}${spikes > 0 ? `, spikes ${spikes}` : ''}`;
}

export function ablationLines({ runs, variants, differences }: AblationResult, width: number): string[] {
  const failed = runs.filter(({ status }) => status === 'failed');
  return [
    ...variantTable(variants),
    '',
    ...agentTable(variants),
    '',
    ...differenceLines(differences, width),
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

function differenceLines(differences: readonly PairedDifference[], width: number): string[] {
  const level = differences.find(({ interval }) => interval !== undefined)?.interval?.level;
  const title = `paired differences of the score, in points${level === undefined ? '' : `, with ${Math.round(100 * level)} % intervals (t over pairs)`}`;
  const rows = differences.map(({ variant, baseline, mean, interval, pairs, better, verdict }) => [
    `${variant} - ${baseline}`,
    pairs === 0 ? '-' : signed(mean),
    interval === undefined ? '' : `[${signed(interval.low)}, ${signed(interval.high)}]`,
    `better in ${better} of ${pairs}`,
    verdicts[verdict],
  ]);
  const inside = differences.some(({ verdict }) => verdict === 'inside');
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

/** A fraction in points, with its sign. */
const signed = (fraction: number): string => `${fraction < 0 ? '' : '+'}${(100 * fraction).toFixed(1)}`;
