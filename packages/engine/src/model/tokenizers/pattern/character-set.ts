/** Sets of characters in the patterns of a tokenizer.json, by the tables of Unicode that the JavaScript engine has. */

/** Whether a character belongs to a set, by its code point. */
export type Belongs = (codePoint: number) => boolean;

const PAGE = 256;
const UNKNOWN = 2;

/** A set that remembers its answers in pages of 256 characters. */
export class CharacterSet {
  readonly #belongs: Belongs;
  readonly #pages: (Uint8Array | undefined)[] = [];

  constructor(belongs: Belongs) {
    this.#belongs = belongs;
  }

  has(codePoint: number): boolean {
    const number = Math.trunc(codePoint / PAGE);
    const page = this.#pages[number] ?? this.#newPage(number);
    const known = page[codePoint % PAGE];
    if (known !== UNKNOWN) return known === 1;
    const belongs = this.#belongs(codePoint);
    page[codePoint % PAGE] = belongs ? 1 : 0;
    return belongs;
  }

  #newPage(number: number): Uint8Array {
    const page = new Uint8Array(PAGE).fill(UNKNOWN);
    this.#pages[number] = page;
    return page;
  }
}

const matches = (source: string): Belongs => {
  const pattern = new RegExp(source, 'u');
  return (codePoint) => pattern.test(String.fromCodePoint(codePoint));
};

export const not =
  (belongs: Belongs): Belongs =>
  (codePoint) =>
    !belongs(codePoint);
export const anyOf =
  (sets: readonly Belongs[]): Belongs =>
  (codePoint) =>
    sets.some((belongs) => belongs(codePoint));
export const allOf =
  (sets: readonly Belongs[]): Belongs =>
  (codePoint) =>
    sets.every((belongs) => belongs(codePoint));
export const between =
  (first: number, last: number): Belongs =>
  (codePoint) =>
    first <= codePoint && codePoint <= last;

/** One character for all that differ in case alone: `s` for `S` and the long s. Unicode's simple case folding. */
function folded(codePoint: number): number {
  const character = String.fromCodePoint(codePoint);
  if (character === DOTLESS_I) return codePoint;
  const single = (text: string, otherwise: string) => (Array.from(text).length === 1 ? text : otherwise);
  const upper = single(character.toUpperCase(), character);
  return single(upper.toLowerCase(), upper).codePointAt(0) ?? codePoint;
}

const DOTLESS_I = '\u0131';
const LAST_CASED = 0x1e943;
let classes: Map<number, number[]> | undefined;

/** The characters that differ from each other in case alone, by the one that stands for them. */
function caseClasses(): ReadonlyMap<number, readonly number[]> {
  if (classes !== undefined) return classes;
  classes = new Map();
  const isCased = matches('\\p{Changes_When_Casemapped}');
  for (let codePoint = 0; codePoint <= LAST_CASED; codePoint++) {
    if (!isCased(codePoint)) continue;
    const key = folded(codePoint);
    classes.set(key, [...(classes.get(key) ?? []), codePoint]);
  }
  return classes;
}

/** All characters that differ from one of a set in case alone. */
export const foldingCase =
  (belongs: Belongs): Belongs =>
  (codePoint) =>
    belongs(codePoint) || caseClasses().get(folded(codePoint))?.some(belongs) === true;

export const space = matches('\\p{White_Space}');
const digit = matches('\\p{Nd}');
/** `\w` between square brackets. */
const word = matches('[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]');
/** `\w` elsewhere, to which Oniguruma counts the numerals of Latin-1. */
export const wordOutside = anyOf([word, matches('[\u00b2\u00b3\u00b9\u00bc-\u00be]')]);
/** `\w` of Rust's own expressions, which cut at words and look for letters beside a token. */
export const rustWord = matches('[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]');
const hexDigit = matches('[0-9A-Fa-f]');

/** The sets that a letter behind a backslash names. */
export const byLetter: ReadonlyMap<string, Belongs> = new Map([
  ...(
    [
      ['s', space],
      ['d', digit],
      ['w', word],
      ['h', hexDigit],
    ] as const
  ).flatMap(([letter, set]): [string, Belongs][] => [
    [letter, set],
    [letter.toUpperCase(), not(set)],
  ]),
]);

const posix: ReadonlyMap<string, Belongs> = new Map([
  ['alpha', matches('\\p{Alphabetic}')],
  ['alnum', matches('[\\p{Alphabetic}\\p{Nd}]')],
  ['ascii', between(0, 0x7f)],
  ['blank', matches('[\\t\\p{Zs}]')],
  ['cntrl', matches('\\p{Cc}')],
  ['digit', digit],
  ['lower', matches('\\p{Lowercase}')],
  ['punct', matches('[\\p{P}\\p{S}]')],
  ['space', space],
  ['upper', matches('\\p{Uppercase}')],
  ['word', word],
  ['xdigit', hexDigit],
]);

/** The set that `[:name:]` names. @throws Error for an unknown name */
export function posixSet(name: string): Belongs {
  const set = posix.get(name);
  if (set === undefined) throw new Error(`it has [:${name}:], which is not supported`);
  return set;
}

/** The set that `\p{name}` names: a category, a property or a script. @throws Error for an unknown name */
export function propertySet(name: string): Belongs {
  if (name.startsWith('^')) return not(propertySet(name.slice(1)));
  const plain = name.toLowerCase();
  if (plain === 'word') return wordOutside;
  if (plain === 'punct') return matches('\\p{P}');
  if (posix.has(plain)) return posixSet(plain);
  const titled = name
    .replaceAll(' ', '_')
    .replace(/[A-Za-z]+/g, (part) => part.charAt(0).toUpperCase() + part.slice(1).toLowerCase());
  for (const form of [name, titled, `Script=${name}`, `Script=${titled}`])
    if (/^[\w=]+$/.test(form))
      try {
        return matches(`\\p{${form}}`);
      } catch {}
  throw new Error(`it has \\p{${name}}, which is not supported`);
}
