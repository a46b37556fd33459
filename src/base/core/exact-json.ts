/**
 * JSON whose numbers keep their digits. JavaScript's numbers round integers above 2^53 and write `1.0` as `1`, so such
 * a number is read as a `NumberText` and written as it was.
 */

/** A number of JSON that JavaScript would write with other digits. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  valueOf(): number {
    return Number(this.text);
  }

  toJSON(): string {
    return `${MARK}${this.text}`;
  }
}

/** The first character of numbers that stand as strings for a moment. It is for private use: no alphabet has it. */
const MARK = '\uE0F9';

const NUMBER = String.raw`-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?`;
/** A string, which is passed over, or a number. */
const STRING_OR_NUMBER = new RegExp(String.raw`"[^"\\]*(?:\\.[^"\\]*)*"|${NUMBER}`, 'gs');
/** Matches texts with numbers whose digits may change. Most texts have none, and are parsed at full speed. */
const MAY_CHANGE = /(?:^|[[:,\s])(?:-?(?:\d{16}|\d+[.eE])|-0)/;
const MARKED_TEXT = new RegExp(`^${MARK}${NUMBER}$`);
const MARKED_JSON = new RegExp(`"${MARK}(${NUMBER})"`, 'g');

/**
 * Parses JSON like `JSON.parse`, except for numbers whose digits would change: they become a `NumberText`.
 * @throws SyntaxError
 */
export function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!MAY_CHANGE.test(text)) return value;
  let isMarked = false;
  const marked = text.replace(STRING_OR_NUMBER, (token) => {
    if (token.startsWith('"') || String(Number(token)) === token) return token;
    isMarked = true;
    return `"${MARK}${token}"`;
  });
  if (!isMarked) return value;
  return JSON.parse(marked, (_, inner: unknown) =>
    typeof inner === 'string' && MARKED_TEXT.test(inner) ? new NumberText(inner.slice(1)) : inner,
  );
}

/** The JSON of a value. A `NumberText` keeps its digits. */
export const exactJson = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null').replace(MARKED_JSON, (_, digits: string) => digits);
