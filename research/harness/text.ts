/** Differences, p values and tables as a page writes them. */
import type { Comparison } from './analysis.js';

/** A share as signed percentage points. */
export const points = (share: number, digits = 1) => `${share < 0 ? '-' : '+'}${Math.abs(100 * share).toFixed(digits)}`;

/** A number with three digits, without zeros after its point. */
export const plain = (value: number) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : '-');

/** A p value with two digits, without its leading zero. */
export const exactText = (p: number): string => (p >= 0.995 ? '1' : String(Number(p.toPrecision(2))).replace(/^0/, ''));

/** A difference in words: a claim from ten pairs on; with fewer, that they are not complete or too few. */
export function gainText({ pairs, mean: centre, interval, p, verdict }: Comparison): string {
  if (pairs === 0) return 'nothing yet';
  const range = interval === undefined ? '' : ` [${points(interval.low)}, ${points(interval.high)}]`;
  const text = `${points(centre)}${range} points, ${pairs} ${pairs === 1 ? 'pair' : 'pairs'}`;
  if (verdict === 'so far') return `so far ${text}`;
  if (verdict === 'too few pairs') return `${text}: too few for a claim`;
  return `${text}, p = ${exactText(p)}${verdict === 'no difference shown' ? `: ${verdict}` : ''}`;
}

/** A slope in words: one for each seed, and the interval over seeds. */
export const slopeText = (slope: Comparison): string => gainText(slope).replace(/ pairs?\b/, ' seeds');

/** A table in Markdown. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** Whether the interval of a comparison leaves out 0, and on which side it lies. */
export const differs = ({ interval }: Comparison) =>
  (interval?.low ?? 0) > 0 ? 'higher' : (interval?.high ?? 0) < 0 ? 'lower' : 'no difference shown';
