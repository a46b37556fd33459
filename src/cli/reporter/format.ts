/** Numbers and tables as people read them. */
import { mean } from '../../core/statistics.js';

/** `0.7 s`, `42 s`, `3:05 min`, `2:10 h`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '-';
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const pad = (value: number) => String(value).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)}:${pad(whole % 60)} min`;
  return `${Math.floor(whole / 3600)}:${pad(Math.floor((whole % 3600) / 60))} h`;
}

/** A fraction as `62.4 %`. */
export const percent = (fraction: number): string => `${(100 * fraction).toFixed(1)} %`;

/** `150,720`. */
export const grouped = (count: number): string =>
  Math.round(count)
    .toString()
    .replaceAll(/\B(?=(\d{3})+$)/g, ',');

/** `950`, `38k`, `4.1M`. */
export function short(count: number): string {
  if (count < 1000) return String(Math.round(count));
  if (count < 1e6) return `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)}k`;
  return `${(count / 1e6).toFixed(1)}M`;
}

/** Three significant digits, without an exponent in the usual range. */
export function significant(value: number | null): string {
  if (value === null || Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-4) return value.toExponential(1);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(size >= 0.1 ? 2 : 4);
}

const bars = '▁▂▃▄▅▆▇█';

/** Values in [low, high] as bars, averaged into at most `width` of them. */
export function sparkline(values: readonly number[], width: number, low = 0, high = 1): string {
  const bins = Math.min(width, values.length);
  let line = '';
  for (let bin = 0; bin < bins; bin++) {
    const part = values.slice(Math.floor((bin * values.length) / bins), Math.floor(((bin + 1) * values.length) / bins));
    const share = (mean(part) - low) / (high - low || 1);
    line += bars.charAt(Math.max(0, Math.min(bars.length - 1, Math.floor(share * bars.length))));
  }
  return line;
}

/** Rows under headers: the first column to the left, numbers to the right, two spaces between. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, c) => Math.max(...rows.map((row) => row[c]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, c) => (c === 0 ? cell.padEnd(widths[c] ?? 0) : cell.padStart(widths[c] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

/** Parts in order of importance, as many as fit, shown in the order of their places. */
export interface Part {
  readonly text: string;
  /** Dropped first when highest. */
  readonly rank: number;
}

/** Joins the parts with two spaces, leaving out the least important ones where the line would be too long. */
export function shortened(parts: readonly Part[], width: number): string {
  const kept = [...parts];
  const line = () => kept.map((part) => part.text).join('  ');
  while (kept.length > 1 && line().length > width) {
    const worst = Math.max(...kept.map((part) => part.rank));
    kept.splice(
      kept.findLastIndex((part) => part.rank === worst),
      1,
    );
  }
  return line().slice(0, width);
}

/** Breaks a text into lines of at most `width`, at spaces where there are any. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    let rest = paragraph;
    while (rest.length > width) {
      const space = rest.lastIndexOf(' ', width);
      const at = space > width / 2 ? space : width;
      lines.push(rest.slice(0, at).trimEnd());
      rest = rest.slice(at).trimStart();
    }
    lines.push(rest);
  }
  return lines;
}

/** What a model wrote, safe to show: control characters become visible ones. */
export function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]/g, '\u00b7');
}
