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

/** Begins what `JSON.stringify` writes for a `NumberText`. It is for private use: few texts have it. */
const MARK = '\uE0F9';

/** Matches texts with numbers whose digits may change. Most texts have none, and are parsed at full speed. */
const MAY_CHANGE = /(?:^|[[:,\s])(?:-?(?:\d{16}|\d+[.eE])|-0)/;
const TOKEN = /\s*("[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s"{}[\],:]+)/gsy;
const WHOLE = /^-?\d+$/;
/** Matches texts with whole numbers that may be rounded: most texts with fractions have none. */
const LONG_WHOLE = /(?:^|[[:,\s])-?\d{16,}(?![\d.eE])/;
/** Longer integers are rounded, as Python refuses them: reading them takes longer than their length. */
const MOST_DIGITS = 4300;

function tokensOf(text: string): () => string {
  const token = new RegExp(TOKEN);
  return () => token.exec(text)?.[1] ?? '';
}

const isNumber = (token: string) => /^[-\d]/.test(token);

/** Parses JSON like `JSON.parse`, with numbers by a function of their digits. @throws SyntaxError */
function parsed(text: string, number: (digits: string) => unknown): unknown {
  const value: unknown = JSON.parse(text);
  if (!MAY_CHANGE.test(text)) return value;
  const next = tokensOf(text);
  const read = (token: string): unknown => {
    if (token === '{') {
      const entries: [string, unknown][] = [];
      for (let key = next(); key !== '}'; key = next()) {
        if (key === ',') continue;
        next();
        entries.push([JSON.parse(key), read(next())]);
      }
      return Object.fromEntries(entries);
    }
    if (token === '[') {
      const items: unknown[] = [];
      for (let item = next(); item !== ']'; item = next()) if (item !== ',') items.push(read(item));
      return items;
    }
    return isNumber(token) ? number(token) : JSON.parse(token);
  };
  return read(next());
}

/**
 * Parses JSON like `JSON.parse`, except for numbers whose digits would change: they become a `NumberText`.
 * @throws SyntaxError
 */
export const parseExactly = (text: string): unknown =>
  parsed(text, (digits) => (String(Number(digits)) === digits ? Number(digits) : new NumberText(digits)));

/**
 * Parses JSON like `JSON.parse`, except for integers that a number would round: they become a bigint.
 * @throws SyntaxError
 */
export const parseWithBigInts = (text: string): unknown =>
  parsed(text, (digits) =>
    WHOLE.test(digits) && !Number.isSafeInteger(Number(digits)) && digits.length <= MOST_DIGITS
      ? BigInt(digits)
      : Number(digits),
  );

/**
 * Parses JSON like `JSON.parse`, except for whole numbers whose digits would change, such as long ids: they become
 * text.
 * @throws SyntaxError
 */
export function parseWithDigits(text: string): unknown {
  if (!LONG_WHOLE.test(text)) return JSON.parse(text);
  return parsed(text, (digits) => {
    const number = Number(digits);
    return WHOLE.test(digits) && number !== 0 && String(number) !== digits ? digits : number;
  });
}

/** Objects by which JSON of more digits, or of another order of its keys, was read. */
const sources = new WeakMap<object, string>();
let hasSources = false;

function remember(value: unknown, written: string): void {
  if (typeof value !== 'object' || value === null || !changes(written)) return;
  sources.set(value, written);
  hasSources = true;
}

/**
 * The JSON of a value. A `NumberText` keeps its digits, and an object that `parseWithSources` or `parseWithSource` read
 * is written as it was.
 */
export function exactJson(value: unknown): string {
  if (!hasSources) {
    const json = JSON.stringify(value) ?? 'null';
    if (!json.includes(MARK)) return json;
  }
  return written('', value) ?? 'null';
}

function written(key: string, given: unknown): string | undefined {
  if (typeof given !== 'object' || given === null) return JSON.stringify(given);
  if (given instanceof NumberText) return given.text;
  const source = sources.get(given);
  if (source !== undefined) return source;
  if ('toJSON' in given && typeof given.toJSON === 'function') return written(key, given.toJSON(key));
  if (Array.isArray(given) && given.every((item) => typeof item !== 'object' || item === null))
    return JSON.stringify(given);
  if (Array.isArray(given)) return `[${given.map((item, i) => written(`${i}`, item) ?? 'null').join(',')}]`;
  if (Object.prototype.toString.call(given) !== '[object Object]') return JSON.stringify(given); // boxed
  const entries = Object.entries(given).flatMap(([name, item]) => {
    const json = written(name, item);
    return json === undefined ? [] : `${JSON.stringify(name)}:${json}`;
  });
  return `{${entries.join(',')}}`;
}

/** Texts in which JSON.parse changes something: digits, or the place of keys that are whole numbers. */
const changes = (text: string) => MAY_CHANGE.test(text) || /"\d+"\s*:/.test(text);

/**
 * Parses JSON like `JSON.parse`, and remembers how the objects under some keys were written, for `exactJson`.
 * @throws SyntaxError
 */
export function parseWithSources(text: string, keys: ReadonlySet<string>): unknown {
  const value: unknown = JSON.parse(text);
  const has = (key: string) => text.includes(JSON.stringify(key));
  if (changes(text) && [...keys].some(has)) compacted(text, value, (name) => keys.has(name));
  return value;
}

/** Parses JSON like `JSON.parse`, and remembers how an object was written, for `exactJson`. @throws SyntaxError */
export function parseWithSource(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (changes(text)) remember(value, compactJson(text));
  return value;
}

/** JSON without white space between its tokens, with its digits and the order of its keys. @throws SyntaxError */
export function compactJson(text: string): string {
  JSON.parse(text);
  return compacted(text);
}

/** The text of valid JSON without white space. Remembers the text of objects under keys that are asked for. */
function compacted(text: string, value?: unknown, isKept: (key: string) => boolean = () => false): string {
  const next = tokensOf(text);
  const read = (token: string, parsed: unknown): string => {
    if (token === '{') {
      const entries: string[] = [];
      for (let key = next(); key !== '}'; key = next()) {
        if (key === ',') continue;
        next();
        const name: string = JSON.parse(key);
        const child = childOf(parsed, name);
        const written = read(next(), child);
        if (isKept(name)) remember(child, written);
        entries.push(`${JSON.stringify(name)}:${written}`);
      }
      return `{${entries.join(',')}}`;
    }
    if (token === '[') {
      const items: string[] = [];
      for (let item = next(); item !== ']'; item = next())
        if (item !== ',') items.push(read(item, childOf(parsed, items.length)));
      return `[${items.join(',')}]`;
    }
    return token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token;
  };
  return read(next(), value);
}

const childOf = (parent: unknown, key: string | number): unknown =>
  typeof parent === 'object' && parent !== null && Object.hasOwn(parent, key)
    ? (parent as Readonly<Record<string | number, unknown>>)[key]
    : undefined;

const withBigInts = new WeakMap<object, unknown>();

/** An object as it was written: its integers that a number would round are bigints. Others as they are. */
export function asWritten<T extends object>(value: T): T {
  const source = sources.get(value);
  if (source === undefined) return value;
  if (!withBigInts.has(value)) withBigInts.set(value, parseWithBigInts(source));
  return withBigInts.get(value) as T;
}

/** A deep copy of an object, which is written as the object itself. */
export function copyWithSource<T extends object>(value: T): T {
  const copy = structuredClone(value);
  const source = sources.get(value);
  if (source !== undefined) sources.set(copy, source);
  return copy;
}
