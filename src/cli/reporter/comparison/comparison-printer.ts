/** The lines at the end of a comparison: scores, curves, and the agents under each variant. */

import { finite, mean } from '@drmas/engine/math';
import { explainInflation, isNotable } from '../../../method/advantage.js';
import type { AgentStage, AgentSummary, VariantSummary } from '../../../runs/analysis.js';
import type { AblationResult } from '../../../runs/studies.js';
import { incompleteLines, points, scoreText } from '../ablation-printer.js';
import { columnTables, fixed, significant, table, wrap } from '../text-layout.js';

export function comparisonLines(result: AblationResult, width: number): string[] {
  const { runs, variants } = result;
  const done = variants.filter((variant) => variant.runs > 0);
  const curves = done.map(({ variant, curve }) => ({ name: variant, values: curve.rewards }));
  return [
    ...(done.some(({ curve }) => finite(curve.rewards).length > 0)
      ? ['training reward, mean of each step', ...chartLines(curves, width), '']
      : []),
    ...agentsByInflation(done).flatMap((agent) => [...agentTables(agent, done, width), '']),
    ...(done.length > 0 ? wrap(LEGEND, width) : []),
    ...inflationLines(done, width),
    '',
    ...scoreTable(done),
    ...differenceLines(result, width),
    ...incompleteLines(runs, width),
  ];
}

const LEGEND =
  'first tenth of the steps -> last tenth; called: share of the episodes; reward: of its turns; norm: of the gradient before clipping; infl.: predicted inflation of its second moment under shared statistics';

/** The agents. First comes the agent whose gradient shared statistics would inflate most. */
function agentsByInflation(variants: readonly VariantSummary[]): string[] {
  const largest = (agent: string) => Math.max(...variants.map(({ agents }) => agents[agent]?.first.inflation ?? 0));
  return [...new Set(variants.flatMap(({ agents }) => Object.keys(agents)))].sort((a, b) => largest(b) - largest(a));
}

/** A table of one agent with a column for each variant; several tables if the columns do not fit on a line. */
function agentTables(agent: string, variants: readonly VariantSummary[], width: number): string[] {
  const columns = variants.flatMap(({ variant, agents }) => {
    const summary = agents[agent];
    return summary === undefined ? [] : [[variant, ...agentColumn(summary)]];
  });
  return columnTables([agent, ...agentRows.map(([label]) => label)], columns, width);
}

const change = (key: keyof AgentStage, show: (value: number) => string) => (agent: AgentSummary) =>
  `${show(agent.first[key])} -> ${show(agent.last[key])}`;
const decimals = (value: number) => fixed(value, 2);

/** A norm. The norm of an agent with nothing to learn is only rounding error and is shown as 0. */
const normText = (norm: number) => (norm < 1e-4 ? '0' : significant(norm));

const agentRows: readonly (readonly [label: string, cell: (agent: AgentSummary) => string])[] = [
  ['called', change('share', decimals)],
  ['reward', change('reward', decimals)],
  ['invalid %', change('invalid', (share) => fixed(100 * share, 1))],
  ['entropy', change('entropy', decimals)],
  ['norm', change('norm', normText)],
  ['largest norm', ({ maxNorm }) => normText(maxNorm)],
  ['infl.', change('inflation', decimals)],
];

const agentColumn = (agent: AgentSummary) => agentRows.map(([, cell]) => cell(agent));

/** A sentence for each agent whose own statistics differ from the shared ones at the start of the first variant. */
function inflationLines([variant]: readonly VariantSummary[], width: number): string[] {
  return Object.entries(variant?.agents ?? {}).flatMap(([agent, { first }]) =>
    isNotable(first) ? wrap(explainInflation(agent, { ...first, calls: first }), width) : [],
  );
}

function scoreTable(variants: readonly VariantSummary[]): string[] {
  const rows = variants.map(({ variant, start, score, reward, runs }) => [
    variant,
    scoreText(start),
    scoreText(score),
    fixed(reward, 3),
    String(runs),
  ]);
  return table([['held-out tasks', 'start', 'end', 'reward', 'runs'], ...rows]);
}

function differenceLines({ differences }: AblationResult, width: number): string[] {
  return differences
    .filter(({ pairs }) => pairs > 0)
    .flatMap(({ variant, baseline, mean, pairs, interval }) => {
      const distance = `${fixed(Math.abs(100 * mean), 1)} points ${mean < 0 ? 'below' : 'above'}`;
      const ends = `${variant} ends ${mean === 0 ? 'as high as' : distance} ${baseline}`;
      const over =
        interval === undefined
          ? ': one pair, which cannot show how much seeds differ'
          : ` over ${pairs} pairs, [${points(interval.low)}, ${points(interval.high)}]`;
      return wrap(ends + over, width);
    });
}

// A chart of several curves in plain characters. It needs neither colours nor a terminal.

interface Series {
  readonly name: string;
  /** One value per step, from the first step; not a number if it was not measured. */
  readonly values: readonly number[];
}

const ROWS = 9;
/** The widest plot in columns: more would only show noise. */
const WIDEST = 64;
/** The mark of a point that several curves share. */
const SEVERAL = '*';

/**
 * Curves over the same steps. Each curve is drawn with a letter of its name. The range is at the left, the steps are
 * below. Steps are averaged into as many columns as fit.
 */
export function chartLines(series: readonly Series[], width: number): string[] {
  const drawn = series.filter(({ values }) => finite(values).length > 0);
  const steps = Math.max(0, ...drawn.map(({ values }) => values.length));
  if (steps === 0) return [];
  const labelWidth = 5;
  const columns = Math.max(1, Math.min(WIDEST, steps, width - labelWidth - 2));
  const marks = marksOf(series.map(({ name }) => name));
  const curves = drawn.map(({ name, values }) => ({
    mark: marks.get(name) ?? SEVERAL,
    bins: binned(values, columns, steps),
  }));
  const all = curves.flatMap(({ bins }) => bins.filter((value) => value !== undefined));
  const [low, high] = [Math.floor(10 * Math.min(...all)) / 10, Math.ceil(10 * Math.max(...all)) / 10];
  const rowOf = (value: number) => Math.round(((value - low) / (high - low || 1)) * (ROWS - 1));
  const lines = Array.from({ length: ROWS }, (_, i) => {
    const row = ROWS - 1 - i;
    const cells = Array.from({ length: columns }, (_, column) => {
      const here = curves.filter(({ bins }) => bins[column] !== undefined && rowOf(bins[column]) === row);
      return here.length > 1 ? SEVERAL : (here[0]?.mark ?? ' ');
    });
    const labelled = row % ((ROWS - 1) / 2) === 0;
    const label = labelled ? fixed(low + ((high - low) * row) / (ROWS - 1), 2) : '';
    return `${label.padStart(labelWidth)} ${labelled ? '+' : '|'}${cells.join('')}`.trimEnd();
  });
  const [first, last] = ['step 1', String(steps)];
  const legend = [
    ...drawn.map(({ name }) => `${marks.get(name)} ${name}`),
    ...(drawn.length > 1 ? [`${SEVERAL} equal`] : []),
  ];
  const indent = ' '.repeat(labelWidth + 2);
  return [
    ...lines,
    `${indent}${first}${last.padStart(Math.max(last.length + 1, columns - first.length))}`,
    `${indent}${legend.join('   ')}`,
  ];
}

/** A letter for each name: the first of its letters that no earlier name has. */
function marksOf(names: readonly string[]): Map<string, string> {
  const marks = new Map<string, string>();
  for (const name of names) {
    const taken = [...marks.values()];
    const letters = [...name, ...'abcdefghijklmnopqrstuvwxyz'].filter((letter) => /[a-z0-9]/i.test(letter));
    marks.set(name, letters.find((letter) => !taken.includes(letter)) ?? SEVERAL);
  }
  return marks;
}

/** The means of the values in each column; `undefined` if there is none, as after the last value. */
function binned(values: readonly number[], columns: number, steps: number): (number | undefined)[] {
  return Array.from({ length: columns }, (_, column) => {
    const [from, to] = [column, column + 1].map((edge) => Math.floor((edge * steps) / columns));
    const part = finite(values.slice(from, to));
    return part.length === 0 ? undefined : mean(part);
  });
}
