/**
 * The blocks of the Markdown pages: fences must be alone on their lines and closed, tables must have as many cells in
 * each row as in the head, headings must go down one level at a time. Rewrapping prose breaks these, and a broken page
 * still reads well as text.
 */
import { markdownPages, readPage } from './pages.js';

/** The broken blocks of all pages, one line each. */
export const brokenBlocks = (): string[] =>
  markdownPages().flatMap((page) => [...blockFaults(page, readPage(page)), ...wrappedCommands(page, readPage(page))]);

const FENCE = /^\s*```/;
/** The text that may follow the marks: none, a language, or a language and the reason why its code is not compiled. */
const OPENING = /^\s*```([\w-]+( ignore: \S.*)?)?$/;
const CLOSING = /^\s*```$/;
const HEADING = /^(#{1,6}) /;
const ROW = /^\s*\|/;
/** Markdown takes such a line as HTML: it ends the paragraph, and links and code on it stay as they are typed. */
const TEXT_BEHIND_COMMENT = /^\s*<!--.*?-->\s*[^\s<]/;
const DELIMITERS = /^\s*\|(\s*:?-+:?\s*\|)+\s*$/;

/** A shell command that is the end of another one, or holds the beginning of a second one. */
const isWrapped = (command: string) =>
  /^(--?\w|https?:)/.test(command) || (/.\bnpx drmas\b/.test(command) && !/^[A-Z_]+=/.test(command));

/** The lines of a page's shell blocks that were wrapped as prose, so that a reader cannot paste them. */
export function wrappedCommands(page: string, text: string): string[] {
  let inShell = false;
  let continues = false;
  return text.split('\n').flatMap((line, i) => {
    if (FENCE.test(line)) {
      inShell = /^\s*```(sh|bash)$/.test(line);
      continues = false;
      return [];
    }
    const commands = line.replace(/(^|\s)# .*$/, '').split(/&&|[|;]/);
    const wrong = inShell && !continues && commands.some((command) => isWrapped(command.trim()));
    continues = line.endsWith('\\');
    return wrong ? [`${page}:${i + 1}: a command that does not begin on a line of its own: ${line.trim()}`] : [];
  });
}

/** The broken blocks of a page, one line each, with page and line. */
export function blockFaults(page: string, text: string): string[] {
  const faults: string[] = [];
  const say = (index: number, message: string) => faults.push(`${page}:${index + 1}: ${message}`);
  const lines = text.split('\n');
  /** The line in which the block of code began that the present line is in. */
  let opened: number | undefined;
  /** The cells of the head of the table that the present line is in. */
  let columns: number | undefined;
  let level = 0;
  for (const [i, line] of lines.entries()) {
    if (opened !== undefined) {
      if (CLOSING.test(line)) opened = undefined;
      else if (FENCE.test(line)) say(i, `a fence within the block of code that began in line ${opened + 1}`);
      continue;
    }
    if (line.includes('```')) {
      columns = undefined;
      if (OPENING.test(line)) opened = i;
      else say(i, 'expected a fence alone on its line, with nothing but a language behind it');
      continue;
    }
    if (TEXT_BEHIND_COMMENT.test(line)) say(i, 'text behind a comment that begins its line; expected a word before it');
    const heading = HEADING.exec(line)?.[1]?.length;
    if (heading !== undefined) {
      if (heading > level + 1) say(i, `a heading of level ${heading} below one of level ${level}`);
      level = heading;
    }
    if (!ROW.test(line)) {
      if (columns !== undefined && line.trim() !== '' && !line.startsWith('<!--'))
        say(i, 'text directly below a table, which becomes a row of it; expected an empty line between them');
      columns = undefined;
    } else if (columns === undefined) {
      columns = cellsOf(line);
      if (!DELIMITERS.test(lines[i + 1] ?? '')) say(i, 'a row of a table without a head');
    } else if (cellsOf(line) !== columns) say(i, `a row of ${cellsOf(line)} cells in a table of ${columns}`);
  }
  if (opened !== undefined) say(opened, 'the block of code that begins here does not end');
  return faults;
}

/**
 * The cells of a row, with or without a mark at its end. A mark after a backslash does not separate cells, even in
 * code.
 */
function cellsOf(row: string): number {
  const marks = row.trim().match(/(?<!\\)\|/g)?.length ?? 0;
  return /(?<!\\)\|$/.test(row.trim()) ? marks - 1 : marks;
}
