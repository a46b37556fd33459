/** How Python writes and classifies texts and numbers. */

/** The characters that `str.strip` removes, as the inside of a class of a regular expression. Not U+FEFF. */
const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const isSpace = new RegExp(`[${SPACE}]`);
export const WORD = new RegExp(`[^${SPACE}]+`, 'g');

export type Side = 'both' | 'left' | 'right';

/** `strip`, `lstrip` and `rstrip`: without characters they remove white space. */
export function strip(text: string, side: Side, characters?: string): string {
  const set = characters === undefined ? undefined : new Set(characters);
  const goes = (character: string) => (set === undefined ? isSpace.test(character) : set.has(character));
  if (set !== undefined && /[\ud800-\udfff]/.test(text)) return stripPoints(Array.from(text), side, goes);
  let [start, end] = [0, text.length];
  if (side !== 'right') while (start < end && goes(text.charAt(start))) start++;
  if (side !== 'left') while (end > start && goes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

function stripPoints(text: readonly string[], side: Side, goes: (character: string) => boolean): string {
  let [start, end] = [0, text.length];
  if (side !== 'right') while (start < end && goes(text[start] ?? '')) start++;
  if (side !== 'left') while (end > start && goes(text[end - 1] ?? '')) end--;
  return text.slice(start, end).join('');
}

/** A text with decimal digits of other scripts as ASCII, as Python's `int` and `float` read them. */
export const asciiDigits = (text: string) =>
  text.replace(/(?![0-9])\p{Nd}/gu, (digit) => {
    // Digits stand in rows of ten, from 0 to 9.
    const code = digit.codePointAt(0) ?? 0;
    let first = code;
    while (/\p{Nd}/u.test(String.fromCodePoint(first - 1))) first--;
    return String((code - first) % 10);
  });

/** Python's `repr` of a float. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  const [mantissa = '', power = '0'] = value.toExponential().split('e');
  const exponent = Number(power);
  if (value !== 0 && (exponent < -4 || exponent >= 16)) {
    const sign = exponent < 0 ? '-' : '+';
    return `${mantissa}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  const text = exponent < 0 ? fixedText(value, mantissa, exponent) : String(value);
  return text.includes('.') ? text : `${text}.0`;
}

function fixedText(value: number, mantissa: string, exponent: number): string {
  const digits = mantissa.replace(/[-.]/g, '');
  return `${value < 0 ? '-' : ''}0.${'0'.repeat(-exponent - 1)}${digits}`;
}

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' };
/** The characters that `repr` escapes: those that are not printable, except the space. */
export const UNPRINTABLE = /[\\\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

/** Python's `repr` of a text. */
export function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(UNPRINTABLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const named = ESCAPES[character];
    if (named !== undefined) return named;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
  });
  return quote + (quote === "'" ? escaped.replaceAll("'", "\\'") : escaped) + quote;
}

/** The ends of a line in a class of a regular expression. */
const LINE_ENDS = '\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029';
const LINE = new RegExp(`\\r\\n|[${LINE_ENDS}]`, 'g');

/** Python's `str.splitlines`. */
export function splitLines(text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  let start = 0;
  for (const match of text.matchAll(LINE)) {
    lines.push(text.slice(start, keepEnds ? match.index + match[0].length : match.index));
    start = match.index + match[0].length;
  }
  if (start < text.length) lines.push(text.slice(start));
  return lines;
}

/** Letters that folding leaves: the dotless i, and the capitals of Cherokee, to which it brings small ones. */
const FOLDED = /[\u0131\u13a0-\u13f5]/;
const CHEROKEE = /[\u13f8-\u13fd\uab70-\uabbf]/;

/** Python's `str.casefold`. */
export const caseFolded = (text: string) =>
  text.replace(/[A-Z]|\P{ASCII}/gu, (character) => {
    if (FOLDED.test(character)) return character;
    if (CHEROKEE.test(character)) return character.toUpperCase();
    return character.toLowerCase().toUpperCase().toLowerCase();
  });

/** Python's `str.capitalize`. */
export function capitalize(text: string): string {
  const [first = ''] = text;
  return titleCase(first) + text.slice(first.length).toLowerCase();
}

/** The letters of two: capital, title case, small. */
const DIGRAPHS = ['Ǆǅǆ', 'Ǉǈǉ', 'Ǌǋǌ', 'Ǳǲǳ'];
/** Georgian has capitals, but no title case. */
const GEORGIAN = /[\u10d0-\u10ff]/;

/** The ligatures and the letters that have a title case of their own are few; `toUpperCase` writes them in capitals. */
function titleCase(character: string): string {
  const row = character === '' ? undefined : DIGRAPHS.find((letters) => letters.includes(character));
  if (row !== undefined) return row[1] ?? '';
  if (GEORGIAN.test(character)) return character;
  const upper = character.toUpperCase();
  const [first = ''] = upper;
  return first + upper.slice(first.length).toLowerCase();
}

/** Python's `str.title`: a letter after anything but a letter is a capital. */
export const title = (text: string) =>
  text.replace(/[\p{Ll}\p{Lu}\p{Lt}]+/gu, (word) => {
    const [first = ''] = word;
    return titleCase(first) + word.slice(first.length).toLowerCase();
  });

const WORD_BREAK = new RegExp(`([-({[<${SPACE}]+)`);

/** jinja2's filter `title`, which keeps "It's". */
export const titleWords = (text: string) =>
  text
    .split(WORD_BREAK)
    .map((word) => {
      const [first = ''] = word;
      return first.toUpperCase() + word.slice(first.length).toLowerCase();
    })
    .join('');
