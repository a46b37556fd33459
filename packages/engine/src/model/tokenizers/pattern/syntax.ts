/** Reads the patterns of a tokenizer.json, which are regular expressions in Oniguruma's notation. */
import {
  allOf,
  anyOf,
  type Belongs,
  between,
  byLetter,
  foldingCase,
  not,
  posixSet,
  propertySet,
  wordOutside,
} from './character-set.js';

export type Place = 'line-start' | 'line-end' | 'start' | 'end' | 'last-line-end' | 'word-edge' | 'no-word-edge';

export type PatternNode =
  | { readonly type: 'set'; readonly belongs: Belongs }
  | { readonly type: 'sequence' | 'choice'; readonly parts: readonly PatternNode[] }
  | {
      readonly type: 'repeat';
      readonly body: PatternNode;
      readonly least: number;
      readonly most: number;
      readonly mode: 'greedy' | 'lazy' | 'possessive';
    }
  | { readonly type: 'look'; readonly body: PatternNode; readonly isBehind: boolean; readonly isNegative: boolean }
  | { readonly type: 'atomic'; readonly body: PatternNode }
  | { readonly type: 'place'; readonly at: Place };

const PLACES: ReadonlyMap<string, Place> = new Map([
  ['A', 'start'],
  ['z', 'end'],
  ['Z', 'last-line-end'],
  ['b', 'word-edge'],
  ['B', 'no-word-edge'],
]);
const CONTROLS: ReadonlyMap<string, number> = new Map(
  Object.entries({ n: 10, r: 13, t: 9, f: 12, v: 11, a: 7, e: 27 }),
);
const ANY = not(between(10, 10));
const BACKSPACE = 8;

/** A member of a set: one character, or all characters of another set. */
interface Member {
  readonly belongs: Belongs;
  readonly codePoint?: number;
}

const one = (codePoint: number): Member => ({ belongs: between(codePoint, codePoint), codePoint });

/** The nodes of a pattern. @throws Error naming the part that cannot be read */
export function parsePattern(source: string): PatternNode {
  return new Parser(source).whole();
}

class Parser {
  readonly #source: string;
  #at = 0;
  #foldsCase = false;

  constructor(source: string) {
    this.#source = source;
  }

  whole(): PatternNode {
    const node = this.#choice();
    if (this.#at < this.#source.length) throw this.#error('an unexpected )');
    return node;
  }

  #error(what: string): Error {
    return new Error(`it has ${what} at character ${this.#at} of ${JSON.stringify(this.#source)}`);
  }

  /** Takes the text if it is next. */
  #take(text: string): boolean {
    const isNext = this.#source.startsWith(text, this.#at);
    if (isNext) this.#at += text.length;
    return isNext;
  }

  /** Takes what the sticky expression finds here. */
  #match(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    const match = expression.exec(this.#source);
    if (match !== null) this.#at += match[0].length;
    return match;
  }

  #codePoint(): number {
    const codePoint = this.#source.codePointAt(this.#at);
    if (codePoint === undefined) throw this.#error('an unexpected end');
    this.#at += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  }

  /** The alternatives up to a closing bracket or the end. `(?i)` holds up to there. */
  #choice(): PatternNode {
    const foldedBefore = this.#foldsCase;
    const options = [this.#sequence()];
    while (this.#take('|')) options.push(this.#sequence());
    this.#foldsCase = foldedBefore;
    const [only] = options;
    return only !== undefined && options.length === 1 ? only : { type: 'choice', parts: options };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#at < this.#source.length && !/[|)]/.test(this.#source.charAt(this.#at))) {
      const atom = this.#atom();
      if (atom !== undefined) parts.push(this.#repeated(atom));
    }
    return { type: 'sequence', parts };
  }

  #repeated(atom: PatternNode): PatternNode {
    let body = atom;
    for (;;) {
      const counts = this.#match(/\{(\d+)(,?)(\d*)\}|\{,(\d+)\}/y);
      if (counts !== null) {
        const [, low = '0', comma, high = '', upTo] = counts;
        const least = Number(low);
        const most = upTo !== undefined ? Number(upTo) : comma === '' ? least : high === '' ? Infinity : Number(high);
        if (most < least) throw this.#error('a range of repetitions that is empty');
        body = { type: 'repeat', body, least, most, mode: this.#take('?') ? 'lazy' : 'greedy' };
        continue;
      }
      const sign = this.#match(/[*+?]/y)?.[0];
      if (sign === undefined) return body;
      const mode = this.#take('?') ? 'lazy' : this.#take('+') ? 'possessive' : 'greedy';
      body = { type: 'repeat', body, least: sign === '+' ? 1 : 0, most: sign === '?' ? 1 : Infinity, mode };
    }
  }

  /** As in Oniguruma `(?i)` holds for single characters and for brackets, not for `\p{Lu}`. */
  #set({ belongs, codePoint }: Member): PatternNode {
    return { type: 'set', belongs: this.#foldsCase && codePoint !== undefined ? foldingCase(belongs) : belongs };
  }

  /** @throws Error for letters that Oniguruma takes for one, or one that it takes for several: `ss` and `ß` */
  #requireSimpleCase(): void {
    const letters = this.#foldsCase ? /ff|f[il]|ss|st|[ßŉǰẖ-ẚﬀ-ﬗ]/iuy : undefined;
    if (letters === undefined) return;
    letters.lastIndex = this.#at;
    const found = letters.exec(this.#source)?.[0];
    if (found !== undefined) throw this.#error(`'${found}' without regard to case, which is not supported,`);
  }

  #atom(): PatternNode | undefined {
    const start = this.#source.charAt(this.#at);
    switch (start) {
      case '(':
        return this.#group();
      case '[':
        return { type: 'set', belongs: this.#bracketed() };
      case '.':
        this.#at++;
        return { type: 'set', belongs: ANY };
      case '^':
      case '$':
        this.#at++;
        return { type: 'place', at: start === '^' ? 'line-start' : 'line-end' };
      case '*':
      case '+':
      case '?':
        throw this.#error(`${start} with nothing to repeat`);
      case '\\': {
        const place = PLACES.get(this.#source.charAt(this.#at + 1));
        if (place === undefined) return this.#set(this.#escaped(true));
        this.#at += 2;
        return { type: 'place', at: place };
      }
      default:
        this.#requireSimpleCase();
        return this.#set(one(this.#codePoint()));
    }
  }

  #group(): PatternNode | undefined {
    if (this.#match(/\(\?#[^)]*\)/y) !== null) return undefined;
    if (this.#take('(?i)')) {
      this.#foldsCase = true;
      return undefined;
    }
    const opening = this.#match(/\((?:\?(?:[:=!>]|<[=!]|<[A-Za-z_]\w*>|i:))?(?!\?)/y)?.[0];
    if (opening === undefined) throw this.#error('a group that is not supported');
    const foldedBefore = this.#foldsCase;
    if (opening === '(?i:') this.#foldsCase = true;
    const body = this.#choice();
    this.#foldsCase = foldedBefore;
    if (!this.#take(')')) throw this.#error('a bracket that is not closed');
    if (opening === '(?>') return { type: 'atomic', body };
    if (!/[=!]$/.test(opening)) return body;
    return { type: 'look', body, isBehind: opening.includes('<'), isNegative: opening.endsWith('!') };
  }

  /** A part of a pattern that a backslash begins. */
  #escaped(isOutside: boolean): Member {
    this.#at++;
    const property = this.#match(/([pP])\{([^}]*)\}/y);
    if (property !== null) {
      const belongs = propertySet(property[2] ?? '');
      return { belongs: property[1] === 'P' ? not(belongs) : belongs };
    }
    const code = this.#match(/x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})/y);
    if (code !== null) return one(Number.parseInt(code[1] ?? code[2] ?? code[3] ?? '', 16));
    const octal = this.#match(/0[0-7]{0,2}/y);
    if (octal !== null) return one(Number.parseInt(octal[0], 8));
    const codePoint = this.#codePoint();
    const letter = String.fromCodePoint(codePoint);
    if (isOutside && letter === 'w') return { belongs: wordOutside };
    if (isOutside && letter === 'W') return { belongs: not(wordOutside) };
    const belongs = byLetter.get(letter);
    if (belongs !== undefined) return { belongs };
    const control = CONTROLS.get(letter) ?? (!isOutside && letter === 'b' ? BACKSPACE : undefined);
    if (control !== undefined) return one(control);
    if (/[A-Za-z0-9]/.test(letter)) throw this.#error(`\\${letter}, which is not supported,`);
    return one(codePoint);
  }

  /** A set between square brackets, in which `&&` intersects. */
  #bracketed(isOutermost = true): Belongs {
    this.#at++;
    const isNegated = this.#take('^');
    const operands: Belongs[][] = [[]];
    for (let isFirst = true; isFirst || !this.#take(']'); isFirst = false) {
      if (this.#take('&&')) operands.push([]);
      else operands.at(-1)?.push(this.#member(isFirst));
    }
    if (operands.some((members) => members.length === 0)) throw this.#error('an empty set');
    const positive = allOf(operands.map(anyOf));
    const folded = this.#foldsCase && isOutermost ? foldingCase(positive) : positive;
    return isNegated ? not(folded) : folded;
  }

  #member(isFirst: boolean): Belongs {
    const posix = this.#match(/\[:(\^?)([a-z]+):\]/y);
    if (posix !== null) return posix[1] === '^' ? not(posixSet(posix[2] ?? '')) : posixSet(posix[2] ?? '');
    if (this.#source.charAt(this.#at) === '[') return this.#bracketed(false);
    const isHyphen = this.#source.charAt(this.#at) === '-';
    const first = this.#bound();
    if (this.#match(/-(?!\]|&&)/y) === null || (isFirst && isHyphen)) return first.belongs;
    const last = this.#bound();
    if (first.codePoint === undefined || last.codePoint === undefined || last.codePoint < first.codePoint)
      throw this.#error('a range that cannot be read');
    return between(first.codePoint, last.codePoint);
  }

  #bound(): Member {
    return this.#source.charAt(this.#at) === '\\' ? this.#escaped(false) : one(this.#codePoint());
  }
}
