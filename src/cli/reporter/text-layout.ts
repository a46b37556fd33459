/** Bars, tables and lines for people; core/format.ts formats numbers. */

import { relative } from 'node:path';
import { mean } from '@drmas/engine/math';
import { commandText } from '@drmas/engine/platform';
import { beginning, columns, leftAligned, rightAligned } from './columns.js';

export { byteText, duration, fixed, grouped, percent, short, significant, visible } from '@drmas/engine/host';

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

/** Aligns rows below their headers: the first column to the left, the others to the right, with two spaces between. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const count = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, c) => Math.max(...rows.map((row) => columns(row[c] ?? ''))));
  return rows.map((row) =>
    row
      .map((cell, c) => (c === 0 ? leftAligned : rightAligned)(cell, widths[c] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** A table of labels with columns beside them; several tables if the columns do not fit on a line. */
export function columnTables(
  labels: readonly string[],
  measured: readonly (readonly string[])[],
  width: number,
): string[] {
  const rows = (of: readonly (readonly string[])[]) =>
    labels.map((label, row) => [label, ...of.map((column) => column[row] ?? '')]);
  let end = measured.length;
  while (end > 1 && Math.max(...table(rows(measured.slice(0, end))).map(columns)) > width) end--;
  const lines: string[] = [];
  for (let at = 0; at < measured.length; at += end) lines.push(...table(rows(measured.slice(at, at + end))));
  return lines;
}

/** A part of a line. It may be left out if the line would be too long. */
export interface Part {
  readonly text: string;
  /** A shorter text, used if the line would be too long. */
  readonly brief?: string;
  /** Parts with the highest rank are shortened first, and left out first. */
  readonly rank: number;
}

/**
 * Joins the parts that have a text with two spaces. If the line would be too long, it shortens and then leaves out the
 * least important parts. Parts of one rank are shortened together before one of them is left out.
 */
export function shortened(parts: readonly Part[], width: number): string {
  const kept = parts.filter(({ text }) => text !== '');
  const line = () => kept.map((part) => part.text).join('  ');
  while (kept.length > 1 && columns(line()) > width) {
    const worst = Math.max(...kept.map((part) => part.rank));
    const brief = kept.some((part) => part.rank === worst && part.brief !== undefined);
    if (brief)
      for (const [i, { rank, brief: text }] of kept.entries())
        if (rank === worst && text !== undefined) kept[i] = { text, rank };
    if (brief) continue;
    kept.splice(
      kept.findLastIndex((part) => part.rank === worst),
      1,
    );
  }
  return beginning(line(), width);
}

/** Texts with two spaces between them, as many as fit on a line. */
export function packed(texts: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const text of texts) {
    const line = lines.at(-1);
    if (line === undefined || columns(line) + 2 + columns(text) > width) lines.push(text);
    else lines[lines.length - 1] = `${line}  ${text}`;
  }
  return lines;
}

/** Breaks a text into lines of at most `width`, at spaces if there are any. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    let rest = paragraph;
    let fits = beginning(rest, width).length;
    while (fits < rest.length) {
      const space = rest.lastIndexOf(' ', fits);
      const at = space > fits / 2 ? space : fits;
      lines.push(rest.slice(0, at).trimEnd());
      rest = rest.slice(at).trimStart();
      fits = beginning(rest, width).length;
    }
    lines.push(rest);
  }
  return lines;
}

/** A text as an item of a list: a dash before its first line, and its other lines below the text. */
export const bullet = (text: string, width: number): string[] =>
  wrap(text, width - 2).map((line, i) => `${i === 0 ? '-' : ' '} ${line}`);

/** A path as a person would type it: relative if it is below the working directory. */
export function nearPath(path: string): string {
  const near = relative('', path) || '.';
  const short = near.startsWith('..') ? path : near;
  return short.startsWith('-') ? `./${short}` : short; // a command would take it for a flag
}

/** Commands of drmas to try next, each with its words after `drmas`, as lines to paste into a shell. */
export const nextCommands = (...commands: readonly (readonly string[])[]): string[] => [
  'next',
  ...commands.flatMap((words) => foldedCommand(['npx', 'drmas', ...words])),
];

/** The widest line of a command that is to be pasted. */
const COMMAND_WIDTH = 80;

/** A command on lines that end with a backslash, each indented; a flag and its value stay together. */
function foldedCommand(words: readonly string[]): string[] {
  const whole = `  ${commandText(words)}`;
  if (whole.length <= COMMAND_WIDTH || process.platform === 'win32') return [whole];
  const pieces = words.reduce<string[][]>((groups, word, i) => {
    const before = words[i - 1] ?? '';
    if (before.startsWith('--') && !word.startsWith('-')) groups.at(-1)?.push(word);
    else groups.push([word]);
    return groups;
  }, []);
  const lines: string[] = [];
  for (const piece of pieces.map((group) => commandText(group))) {
    const line = lines.at(-1);
    if (line === undefined) lines.push(`  ${piece}`);
    else if (line.length + piece.length + 3 <= COMMAND_WIDTH) lines[lines.length - 1] = `${line} ${piece}`;
    else lines.push(`    ${piece}`);
  }
  return lines.map((line, i) => (i < lines.length - 1 ? `${line} \\` : line));
}
