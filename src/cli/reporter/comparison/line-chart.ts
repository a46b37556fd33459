/** A chart of several curves in plain characters. It needs neither colours nor a terminal. */
import { mean } from '../../../base/math.js';

export interface Series {
  readonly name: string;
  /** One value per step, from the first step. */
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
  const drawn = series.filter(({ values }) => values.length > 0);
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
    const label = labelled ? (low + ((high - low) * row) / (ROWS - 1)).toFixed(2) : '';
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

/** The means of the values in each column; `undefined` after the last value. */
function binned(values: readonly number[], columns: number, steps: number): (number | undefined)[] {
  return Array.from({ length: columns }, (_, column) => {
    const [from, to] = [column, column + 1].map((edge) => Math.floor((edge * steps) / columns));
    const part = values.slice(from, to);
    return part.length === 0 ? undefined : mean(part);
  });
}
