/**
 * Tokens of a template, as jinja2 cuts them with `trim_blocks` and `lstrip_blocks`: the line break after a statement
 * goes, and the white space before one that begins its line.
 */
import { strip } from './python-text.js';

export type TokenType = 'data' | 'block' | 'blockEnd' | 'print' | 'printEnd' | Written;
type Written = 'name' | 'string' | 'int' | 'float' | 'operator';

export interface Token {
  readonly type: TokenType;
  /** The text: of a string without quotes and escapes. */
  readonly text: string;
  readonly line: number;
}

const SPACES = /[^\S\ufeff]*/y;
const EXPRESSION: readonly (readonly [Written, RegExp])[] = [
  ['float', /(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?[eE][+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/y],
  ['int', /0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*/y],
  ['name', /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]*/uy],
  ['string', /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y],
  ['operator', /\/\/|\*\*|==|!=|>=|<=|[-+*/%~()[\]{}.:|,;<>=]/y],
];
const RAW = /\{%([-+]?)\s*raw\s*(?:-%\}\s*|%\})/y;
const END_RAW = /\{%([-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\}\n?)/g;
const OPENING = /\{[{%#]/g;
const CLOSING: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };

/** @throws Error naming the line of what cannot be read */
export function tokenize(template: string): Token[] {
  const source = template.replace(/\r\n?/g, '\n').replace(/\n$/, '');
  const tokens: Token[] = [];
  let at = 0;
  let line = 1;
  let counted = 0;
  const lineAt = (place: number): number => {
    for (let i = source.indexOf('\n', counted); i >= 0 && i < place; i = source.indexOf('\n', i + 1)) {
      line++;
      counted = i + 1;
    }
    return line;
  };
  const fail = (what: string): never => {
    throw new Error(`${what} in line ${lineAt(at)}`);
  };
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(source);
  };
  const push = (type: TokenType, text: string) => tokens.push({ type, text, line: lineAt(at) });
  /** The text before a tag, without the white space that the tag takes. */
  const before = (text: string, sign: string, isPrint: boolean, start: number): string => {
    if (sign === '-') return strip(text, 'right');
    if (sign === '+' || isPrint) return text;
    const begin = text.lastIndexOf('\n') + 1;
    const beginsLine = begin > 0 || start === 0 || source.charAt(start - 1) === '\n';
    return beginsLine && strip(text.slice(begin), 'both') === '' ? text.slice(0, begin) : text;
  };
  const data = (text: string) => {
    if (text !== '') push('data', text);
  };

  while (at < source.length) {
    const opening = match(OPENING);
    const start = at;
    if (opening === null) {
      data(source.slice(at));
      break;
    }
    at = opening.index;
    const text = source.slice(start, at);
    const sign = /[-+]/.test(source.charAt(at + 2)) ? source.charAt(at + 2) : '';
    const raw = match(RAW);
    data(before(text, raw?.[1] ?? sign, opening[0] === '{{', start));
    if (raw !== null) {
      at += raw[0].length;
      const begin = at;
      const end = match(END_RAW);
      if (end === null) return fail('a raw block without its end');
      data(before(source.slice(begin, end.index), end[1] ?? '', false, begin));
      at = end.index + end[0].length;
      continue;
    }
    if (opening[0] === '{#') {
      const begin = at + 2 + sign.length;
      const end = source.indexOf('#}', begin);
      if (end < 0) return fail('a comment without its end');
      at = end + 2;
      afterTag(end > begin ? source.charAt(end - 1) : '');
      continue;
    }
    const isPrint = opening[0] === '{{';
    push(isPrint ? 'print' : 'block', '');
    at += 2 + sign.length;
    expression(isPrint ? '}}' : '%}', isPrint);
  }
  return tokens;

  /** Takes the white space behind a tag that ends here; `sign` stands before its end. */
  function afterTag(sign: string): void {
    if (sign === '-') at += match(SPACES)?.[0].length ?? 0;
    else if (sign !== '+' && source.charAt(at) === '\n') at++;
  }

  function expression(close: string, isPrint: boolean): void {
    const brackets: string[] = [];
    for (;;) {
      at += match(SPACES)?.[0].length ?? 0;
      if (at >= source.length) fail(`a tag without its end, ${close},`);
      if (brackets.length === 0) {
        const sign = source.charAt(at);
        const signed = sign === '-' || (sign === '+' && !isPrint) ? sign : '';
        if (source.startsWith(signed + close, at)) {
          push(isPrint ? 'printEnd' : 'blockEnd', '');
          at += signed.length + 2;
          if (signed === '-' || !isPrint) afterTag(signed);
          return;
        }
      }
      one(brackets);
    }
  }

  function one(brackets: string[]): void {
    for (const [type, pattern] of EXPRESSION) {
      const found = match(pattern)?.[0];
      if (found === undefined) continue;
      if (type === 'float' && source.charAt(at - 1) === '.') continue;
      if (type === 'operator') {
        if ('([{'.includes(found)) brackets.push(found);
        else if (')]}'.includes(found) && brackets.pop() !== CLOSING[found]) fail(`unexpected '${found}'`);
      }
      if (type === 'string') push(type, unescaped(found.slice(1, -1)));
      else push(type, type === 'name' ? found : found.replaceAll('_', ''));
      at += found.length;
      return;
    }
    fail(`unexpected '${source.charAt(at)}'`);
  }
}

const NAMED: Readonly<Record<string, string>> = {
  ...{ n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' },
  ...{ '\\': '\\', "'": "'", '"': '"', '\n': '' },
};
const ESCAPE = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{1,3})|([\s\S]))/g;

/** Python's escapes in a text; a backslash before another character stays. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(ESCAPE, (all, two?: string, four?: string, eight?: string, octal?: string, other = '') => {
    const hex = two ?? four ?? eight;
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
    if ('xuUN'.includes(other)) throw new Error(`a text has the escape ${all}, which is not complete`);
    return NAMED[other] ?? all;
  });
}
