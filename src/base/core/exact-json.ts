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

/** Objects by which JSON of more digits, or of another order of its keys, was read. */
const sources = new WeakMap<object, string>();

/** Texts in which JSON.parse changes something: digits, or the place of keys that are whole numbers. */
const changes = (text: string) => MAY_CHANGE.test(text) || /"\d+"\s*:/.test(text);
const TOKEN = /\s*("[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s"{}[\],:]+)/gsy;

/**
 * Parses JSON like `JSON.parse`, and remembers how the objects under some keys were written, for `jsonOf`.
 * @throws SyntaxError
 */
export function parseWithSources(text: string, keys: ReadonlySet<string>): unknown {
  const value: unknown = JSON.parse(text);
  if (!changes(text)) return value;
  TOKEN.lastIndex = 0;
  const next = () => TOKEN.exec(text)?.[1] ?? '';
  /** Reads the value that begins with a token. Returns its JSON without white space. */
  const read = (token: string, parsed: unknown): string => {
    if (token === '{') {
      const entries: string[] = [];
      for (let key = next(); key !== '}'; key = next()) {
        if (key === ',') continue;
        next();
        const name: string = JSON.parse(key);
        const child = childOf(parsed, name);
        const written = read(next(), child);
        if (keys.has(name) && typeof child === 'object' && child !== null && changes(written))
          sources.set(child, written);
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
  read(next(), value);
  return value;
}

const childOf = (parent: unknown, key: string | number): unknown =>
  typeof parent === 'object' && parent !== null && Object.hasOwn(parent, key)
    ? (parent as Readonly<Record<string | number, unknown>>)[key]
    : undefined;

/** The JSON of an object: as it was written, if `parseWithSources` read it. */
export const jsonOf = (value: object): string => sources.get(value) ?? JSON.stringify(value);

/** A copy of a value whose parts under a key keep how they were written. */
export function copyWithSources<T extends object>(value: T, key: keyof T): T {
  const copy = structuredClone(value);
  const [from, to] = [value[key], copy[key]];
  const source = typeof from === 'object' && from !== null ? sources.get(from) : undefined;
  if (source !== undefined && typeof to === 'object' && to !== null) sources.set(to, source);
  return copy;
}
