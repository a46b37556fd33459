/** The lines that an ablation prints while its runs train, and the comparison at its end. */

import { differ } from '@drmas/engine/math';
import { HOW_TO_SUCCEED, labelOfPart } from '@drmas/engine/nouns';
import type { PairedDifference, RunSummary, VariantSummary } from '../../runs/analysis.js';
import type { AblationResult } from '../../runs/studies.js';
import { paretoLines } from './comparison/pareto-printer.js';
import { scoredText } from './score-printer.js';
import { columnTables, duration, fixed, percent, short, significant, table, wrap } from './text-layout.js';

/** `no score` if the reward of each episode failed. */
export const scoreText = (score: number | undefined) => (score === undefined ? 'no score' : percent(score));

export function endedLine(run: RunSummary): string {
  const { variant, seed, status, message, start, score, unscored, spikes } = run;
  const who = `${variant}, pair ${seed}`;
  if (status === 'failed') return `${who}: failed: ${message ?? ''}`;
  const missing = unscored === undefined ? '' : `, ${scoredText(run)} at the end`;
  return `${who}: ${scoreText(start)} -> ${scoreText(score)}${missing}${spikes > 0 ? `, spikes ${spikes}` : ''}`;
}

export const incompleteLines = (runs: readonly RunSummary[], width: number) =>
  runs
    .filter(({ status, unscored }) => status === 'failed' || unscored !== undefined)
    .flatMap((run) => wrap(endedLine(run), width));

/** How to make the score mean something, if no run scores although its rewards are not 0. */
export function successLines({ variants }: AblationResult, saysSuccess: boolean, width: number): string[] {
  const done = variants.filter(({ runs }) => runs > 0);
  const isFlat = done.every(({ score, rewards }) => {
    const earned = (rewards.reward ?? 0) - (rewards[labelOfPart('calls')] ?? 0);
    return score === 0 && differ(earned, 0) && !(labelOfPart('correct') in rewards);
  });
  return isFlat && done.length > 0 && !saysSuccess ? wrap(HOW_TO_SUCCEED, width) : [];
}

export function ablationLines(result: AblationResult, width: number): string[] {
  const { runs, variants, differences, metricDifferences } = result;
  return [
    ...variantTable(variants),
    '',
    ...agentTable(variants),
    '',
    ...measureTables(variants, width),
    ...spendingTable(variants),
    ...budgetTable(variants),
    ...(result.pareto === undefined ? [] : paretoLines(result.pareto, width)),
    ...differenceLines('the score, in points', { '': differences }, width, points),
    ...differenceLines('metrics', metricDifferences, width, plain),
    ...incompleteLines(runs, width),
  ];
}

function variantTable(variants: readonly VariantSummary[]): string[] {
  const rows = variants.map(({ variant, runs, start, score, scoreSpread, reward, spikes }) => [
    variant,
    String(runs),
    ...(runs === 0
      ? ['-', '-', '-', '-', '-']
      : [scoreText(start), scoreText(score), fixed(100 * scoreSpread, 1), fixed(reward, 3), significant(spikes)]),
  ]);
  return [
    ...table([['means over seeds', 'runs', 'start', 'score', 'sd', 'reward', 'spikes'], ...rows]),
    'score: avg@k of the last evaluation; sd: its standard deviation over seeds;',
    'reward: mean over the training steps; spikes: mean number per run',
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
      fixed(100 * invalid, 1),
    ]),
  );
  return [
    ...table([['agent', 'norm', 'max', 'spikes', 'infl.', 'max|A|', 'inv %'], ...rows]),
    'norm: of the gradient before clipping; infl.: predicted inflation of its',
    'second moment under shared statistics; max, max|A|: the largest of a run',
  ];
}

function measureTables(variants: readonly VariantSummary[], width: number): string[] {
  const done = variants.filter(({ runs }) => runs > 0);
  const names = (of: (variant: VariantSummary) => object) => [...new Set(done.flatMap((one) => Object.keys(of(one))))];
  const labels = [...names(({ metrics }) => metrics).sort(), ...names(({ rewards }) => rewards)];
  if (labels.length === 0) return [];
  const cell = (value: number | undefined) => (value === undefined ? '-' : significant(value));
  const columns = done.map(({ variant, metrics, rewards }) => [
    variant,
    ...labels.map((label) => cell(metrics[label] ?? rewards[label])),
  ]);
  return [...columnTables(['last evaluation', ...labels], columns, width), ''];
}

function spendingTable(variants: readonly VariantSummary[]): string[] {
  const all = variants.flatMap(({ variant, spending }) => spending.map((row) => ({ variant, ...row })));
  if (all.length === 0) return [];
  const costs = all.some(({ cost }) => cost !== undefined);
  const rows = all.map(({ variant, agent, tokens, cost, seconds }) => [
    agent === undefined ? variant : `${variant}: ${agent}`,
    ...[tokens.read, tokens.written, tokens.trained].map(short),
    ...(costs ? [cost === undefined ? '-' : significant(cost)] : []),
    seconds === undefined ? '' : duration(seconds),
  ]);
  const header = ['tokens an episode', 'read', 'written', 'trained', ...(costs ? ['run costs'] : []), 'a run'];
  return [...table([header, ...rows]), ''];
}

/** The tokens and FLOPs that training took, by variant. With equal numbers, variants are compared at one budget. */
function budgetTable(variants: readonly VariantSummary[]): string[] {
  const rows = variants.flatMap(({ variant, budget }) => {
    if (budget === undefined) return [];
    const { demonstrated, read, written, trained, operations } = budget;
    const flops = operations === undefined ? '-' : operations.toExponential(2).replace('e+', 'e');
    return [[variant, ...[demonstrated, read, written, trained].map(short), flops]];
  });
  if (rows.length === 0) return [];
  const header = ['tokens of a training', 'shown', 'read', 'written', 'trained', 'FLOPs'];
  return [
    ...table([header, ...rows]),
    'shown: in demonstrations; FLOPs: 2 per parameter and token that is read or',
    'written, 6 per trained token, without attention and evaluations',
    '',
  ];
}

/** The table of the paired differences of a measure, or of several named measures. No lines if there are none. */
function differenceLines(
  what: string,
  compared: Readonly<Record<string, readonly PairedDifference[]>>,
  width: number,
  show: (difference: number) => string,
): string[] {
  const all = Object.values(compared).flat();
  if (all.length === 0 && !('' in compared)) return [];
  const level = all.find(({ interval }) => interval !== undefined)?.interval?.level;
  const title = `paired differences of ${what}${level === undefined ? '' : `, with ${Math.round(100 * level)} % intervals (t) and exact p`}`;
  const rows = Object.entries(compared).flatMap(([name, differences]) =>
    differences.map(({ variant, baseline, mean, interval, p, pairs, better, verdict }) => [
      `${name === '' ? '' : `${name}: `}${variant} - ${baseline}`,
      pairs === 0 ? '-' : show(mean),
      interval === undefined ? '' : `[${show(interval.low)}, ${show(interval.high)}]`,
      p === undefined ? '' : `p ${significant(p)}`,
      `better in ${better} of ${pairs}`,
      verdicts[verdict],
    ]),
  );
  const isShown = all.some(({ verdict }) => verdict === 'higher' || verdict === 'lower');
  return [
    ...wrap(title, width),
    ...table(rows).map((line) => `  ${line}`),
    ...(all.some(({ verdict }) => verdict === 'unknown')
      ? ['too few pairs: fewer than six cannot show a difference']
      : []),
    ...(isShown && all.length > 1 ? wrap(unadjusted(all.length), width) : []),
  ];
}

const verdicts: Readonly<Record<PairedDifference['verdict'], string>> = {
  higher: 'higher',
  lower: 'lower',
  inside: 'no difference shown',
  unknown: 'too few pairs',
};

const unadjusted = (count: number) => `Of ${count} such differences, one in twenty seems shown by chance.`;

const signed = (digits: (value: number) => string) => (value: number) => `${value < 0 ? '' : '+'}${digits(value)}`;

/** A fraction in percentage points, with its sign. */
export const points = signed((fraction) => fixed(100 * fraction, 1));

const plain = signed(significant);
