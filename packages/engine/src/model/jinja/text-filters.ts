/** Filters of jinja2 that lay out or clean a text. */

import type { Budget } from './budget.js';
import { fixedText } from './format-text.js';
import { splitLines, strip, WORD } from './python-text.js';
import { points } from './values.js';

/** The white space at which Python's `textwrap` cuts. */
const BLANK = '\\t\\n\\v\\f\\r ';
const [PART, LETTER] = ['[\\p{L}\\p{N}_]', '[\\p{L}\\p{Nl}\\p{No}_]'];
const DASH = `(?<=(?:${PART}|[!"'&.,?]))`;
/** `wordsep_re` of Python's `textwrap`: white space, a dash between words, or a word up to a hyphen. */
const CHUNKS = new RegExp(
  `([${BLANK}]+|${DASH}-{2,}(?=${PART})|[^${BLANK}]+?(?:` +
    `-(?:(?<=${LETTER}{2}-)|(?<=${LETTER}-${LETTER}-))(?=${LETTER}-?${LETTER})|(?=[${BLANK}]|$)|${DASH}(?=-{2,}${PART})))`,
  'u',
);
const WORDS = new RegExp(`([${BLANK}]+)`);

export interface Wrapping {
  readonly width: number;
  readonly end: string;
  readonly breaksWords: boolean;
  readonly breaksAtHyphens: boolean;
}

/** jinja2's `wordwrap`: each line as Python's `textwrap.wrap` cuts it. */
export function wordWrapped(text: string, wrapping: Wrapping, budget: Budget): string {
  const lines = splitLines(text, false).flatMap((line) => {
    budget.length(line.length);
    const wrapped = wrappedLine(line, wrapping, budget);
    return wrapped.length === 0 ? [''] : wrapped;
  });
  budget.length(lines.reduce((sum, line) => sum + line.length + wrapping.end.length, 0));
  return lines.join(wrapping.end);
}

const isBlank = (chunk: readonly string[] | undefined) => chunk !== undefined && strip(chunk.join(''), 'both') === '';

function wrappedLine(line: string, { width, breaksWords, breaksAtHyphens }: Wrapping, budget: Budget): string[] {
  if (width < 1) throw new Error(`wordwrap: expected a width of at least 1, got ${width}`);
  const pieces = line.split(breaksAtHyphens ? CHUNKS : WORDS).filter((piece) => piece !== undefined && piece !== '');
  const chunks = pieces.map(points).reverse();
  const lines: string[] = [];
  while (chunks.length > 0) {
    let [row, length]: [string[][], number] = [[], 0];
    const add = (chunk: readonly string[]) => {
      row = [...row, [...chunk]];
      length += chunk.length;
    };
    if (lines.length > 0 && isBlank(chunks.at(-1))) chunks.pop();
    for (let next = chunks.at(-1); next !== undefined && length + next.length <= width; next = chunks.at(-1)) {
      budget.spend(1 + row.length);
      add(next);
      chunks.pop();
    }
    const long = chunks.at(-1);
    if (long !== undefined && long.length > width) {
      budget.spend(long.length);
      if (breaksWords) {
        const end = breakOf(long, width - length, breaksAtHyphens);
        add(long.slice(0, end));
        chunks[chunks.length - 1] = long.slice(end);
      } else if (row.length === 0) {
        add(long);
        chunks.pop();
      }
    }
    if (isBlank(row.at(-1))) row.pop();
    if (row.length > 0) lines.push(row.flat().join(''));
  }
  return lines;
}

/** The place at which a word that fits on no line is broken. */
function breakOf(word: readonly string[], space: number, atHyphens: boolean): number {
  const hyphen = atHyphens ? word.slice(0, space).lastIndexOf('-') : -1;
  return hyphen > 0 && word.slice(0, hyphen).some((character) => character !== '-') ? hyphen + 1 : space;
}

/** The entities that `striptags` reads besides numbers. HTML has 2,231; others are refused. */
const ENTITIES: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' },
};
const ENTITY = /&(?:#(\d{1,7});?|#[xX]([\da-fA-F]{1,6});?|([A-Za-z][A-Za-z\d]{0,31});?)/g;

/** jinja2's `striptags`. @throws Error for an entity that it does not know */
export function withoutTags(text: string): string {
  let [kept, at] = ['', 0];
  for (let start = text.indexOf('<'); start >= 0; start = text.indexOf('<', at)) {
    const isComment = text.startsWith('<!--', start);
    const end = isComment ? text.indexOf('-->', start + 4) : text.indexOf('>', start);
    if (end < 0) break;
    kept += text.slice(at, start);
    at = end + (isComment ? 3 : 1);
  }
  const words = (kept + text.slice(at)).match(WORD) ?? [];
  return words.join(' ').replace(ENTITY, (all, decimal: string, hexadecimal: string, name: string) => {
    const known = name === undefined ? undefined : ENTITIES[name];
    if (known !== undefined && all.endsWith(';')) return known;
    const code = name === undefined ? Number.parseInt(decimal ?? hexadecimal, decimal === undefined ? 16 : 10) : 0;
    const isPlain =
      (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code < 0xd800) || (code > 0xdfff && code < 0xfdd0);
    if (!isPlain) throw new Error(`striptags: cannot read '${all}'`);
    return String.fromCodePoint(code);
  });
}

/** Python's `urllib.parse.quote`. @param isQuery With `+` for a space, and without slashes */
export function urlQuoted(text: string, isQuery: boolean): string {
  if (/[\ud800-\udfff]/u.test(text)) throw new Error('urlencode: expected text without halves of surrogate pairs');
  const quoted = encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return isQuery ? quoted.replaceAll('%20', '+') : quoted.replaceAll('%2F', '/');
}

const UNITS = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];

/** jinja2's `filesizeformat`. */
export function fileSize(bytes: number, isBinary: boolean): string {
  if (!Number.isFinite(bytes)) throw new Error('filesizeformat: expected a finite number');
  const base = isBinary ? 1024 : 1000;
  if (bytes === 1) return '1 Byte';
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
  const exponent = UNITS.findIndex((_, i) => bytes < base ** (i + 2));
  const power = exponent < 0 ? UNITS.length : exponent + 1;
  const unit = UNITS[power - 1] ?? '';
  return `${fixedText((base * bytes) / base ** (power + 1), 1)} ${isBinary ? `${unit.toUpperCase()}i` : unit}B`;
}

/** Python's `str.expandtabs`. */
export function withoutTabs(text: string, size: number, budget: Budget): string {
  let [column, result] = [0, ''];
  for (const character of points(text)) {
    if (character === '\t') {
      const spaces = size > 0 ? size - (column % size) : 0;
      budget.length(result.length + spaces);
      result += ' '.repeat(spaces);
      column += spaces;
    } else {
      result += character;
      column = character === '\n' || character === '\r' ? 0 : column + 1;
    }
  }
  return budget.text(result);
}
