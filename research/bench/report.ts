/** The text form of results. */
import type { KernelRow, Ratio, Results, Row } from './results.js';

/**
 * A table with columns as wide as their widest cell; the first `left` columns are left-aligned, the others
 * right-aligned.
 */
export function table(header: readonly string[], rows: readonly (readonly string[])[], left: number): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column < left ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  return [line(header), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

/** A number with three significant digits and a prefix: 49.9k, 1.21M. */
export function amount(value: number): string {
  const scales: readonly [number, string][] = [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ];
  const [scale, prefix] = scales.find(([least]) => Math.abs(value) >= least) ?? [1, ''];
  return `${Number((value / scale).toPrecision(3))}${prefix}`;
}

export const percent = (share: number): string => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

const cleanText = (clean: boolean | undefined): string =>
  clean === true ? 'yes' : clean === false ? 'NO' : 'not known';

function rowCells(row: Row): string[] {
  const { part, shape, engine, threads, unit, median, low, high, used, total, clean, peakShare } = row;
  const spread = `${amount(low)} - ${amount(high)}`;
  const share = peakShare === undefined ? '' : percent(peakShare);
  return [
    part,
    shape,
    engine,
    `${threads}`,
    `${amount(median)} ${unit}/s`,
    spread,
    share,
    `${used}/${total}`,
    cleanText(clean),
  ];
}

function ratioCells({ part, shape, what, value, target, clean }: Ratio): string[] {
  const verdict = target === undefined ? '' : value >= target ? 'met' : 'missed';
  const wanted = target === undefined ? '' : `>= ${target}`;
  return [part, shape, what, value.toFixed(2), wanted, verdict, cleanText(clean)];
}

function kernelCells({
  shape,
  kernel,
  sizes,
  threads,
  seconds,
  limitSeconds,
  bound,
  work,
  limitRate,
  clean,
}: KernelRow) {
  const unit = bound === 'arithmetic' ? 'FLOP/s' : 'B/s';
  const rates = [work / seconds, limitRate].map((rate) => `${amount(rate)}${unit}`);
  const micros = (1e6 * seconds).toFixed(1);
  return [shape, kernel, sizes, `${threads}`, micros, ...rates, percent(limitSeconds / seconds), cleanText(clean)];
}

/** The text that the benchmark prints at its end. */
export function reportText({ kernels, rows, ratios, skipped }: Results): string {
  const sections: string[] = [];
  if (kernels.length > 0) {
    const header = ['shape', 'kernel', 'sizes', 'threads', 'µs', 'achieved', 'limit', 'of limit', 'alone'];
    sections.push(table(header, kernels.map(kernelCells), 3));
  }
  if (rows.length > 0) {
    const header = ['part', 'shape', 'engine', 'threads', 'median', 'low - high', 'of peak', 'used', 'alone'];
    sections.push(table(header, rows.map(rowCells), 3));
  }
  const details = rows.filter((row) => Object.keys(row.details).length > 0);
  if (details.length > 0) {
    const lines = details.map((row) => {
      const values = Object.entries(row.details).map(([key, value]) => `${key} ${amount(value)}`);
      return `  ${row.part} ${row.shape}, ${row.engine}, ${row.threads} thr.: ${values.join(', ')}`;
    });
    sections.push(`Medians of further numbers:\n${lines.join('\n')}`);
  }
  const held = rows.flatMap(({ part, shape, peakResidentBytes }) =>
    peakResidentBytes === undefined ? [] : `  ${part} ${shape}: ${amount(peakResidentBytes)}B`,
  );
  if (held.length > 0) sections.push(`Peak resident memory of the process, since its start:\n${held.join('\n')}`);
  if (ratios.length > 0)
    sections.push(
      table(['part', 'shape', 'ratio of medians', 'value', 'target', '', 'alone'], ratios.map(ratioCells), 3),
    );
  if (skipped.length > 0)
    sections.push(`Not measured:\n${skipped.map(({ what, reason }) => `  ${what}: ${reason}`).join('\n')}`);
  if ([...kernels, ...rows].some(({ clean }) => clean === false))
    sections.push(
      'Rows that were not alone ("NO") are no measurements: something else kept a core busy. Run them again.',
    );
  return sections.join('\n\n');
}
