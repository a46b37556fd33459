/** The structure of an answer: lists, sets, tuples, intervals, unions, matrices, equations, expressions, words. */
import { type Expression, parseExpression } from './expression.js';
import { POINTS, type Value, valueAt } from './numeric.js';
import { exactValue, type Rational } from './rational.js';

export interface Quantity {
  readonly type: 'quantity';
  readonly expression: Expression;
  readonly percent: boolean;
  readonly exact: Rational | undefined;
  readonly values: readonly Value[]; // [POINTS]
}

export type Answer =
  | Quantity
  /** The text in one spelling, without spaces except between two numbers. */
  | { readonly type: 'words'; readonly text: string }
  /** Members without order: a list, a set, the two values of ±. */
  | { readonly type: 'list'; readonly items: readonly Answer[] }
  /** Members with order and brackets: a tuple, or an interval, perhaps of a variable. */
  | {
      readonly type: 'tuple';
      readonly open: string;
      readonly close: string;
      readonly items: readonly Answer[];
      readonly variable?: string;
    }
  | { readonly type: 'union'; readonly items: readonly Answer[] }
  | { readonly type: 'matrix'; readonly rows: readonly (readonly Answer[])[] }
  | { readonly type: 'relation'; readonly operator: string; readonly left: Answer; readonly right: Answer };

/** The most members of a list; longer lists are compared as texts. */
const MAX_ITEMS = 100;
const MAX_DEPTH = 12;

/** Reads a cleaned answer. A text without other structure is a quantity; a text that is not an expression is words. */
export function readAnswer(text: string, depth = 0): Answer {
  const trimmed = text.replaceAll('\\!', ' ').trim();
  if (depth > MAX_DEPTH) return words(trimmed);
  const read = (part: string) => readAnswer(part, depth + 1);
  const membership = /^[A-Za-z](?:_\{?\w+\}?)?\s*\\in(?![A-Za-z])/.exec(trimmed);
  if (membership !== null && split(trimmed, ',').length === 1) {
    const of = read(trimmed.slice(membership[0].length));
    const variable = membership[0].replace(/\\in$|[{}\s]/g, '');
    return of.type === 'tuple' ? { ...of, variable: of.variable ?? variable } : of;
  }
  // A single word is not a product of its letters.
  if (/^[A-Za-z\s.'-]*[A-Za-z]{3}[A-Za-z\s.'-]*$/.test(trimmed)) return words(trimmed);

  const parts = split(trimmed, ',').filter((part) => part !== '');
  if (parts.length > MAX_ITEMS) return words(trimmed);
  if (parts.length > 1) return list(parts.map(read));
  if (parts.length === 1 && parts[0] !== trimmed) return read(parts[0] ?? '');

  if (/\\(?:pm|mp)(?![A-Za-z])/.test(trimmed)) {
    const signed = (plus: string, minus: string) =>
      read(trimmed.replace(/\\pm(?![A-Za-z])/g, plus).replace(/\\mp(?![A-Za-z])/g, minus));
    return list([signed('+', '-'), signed('-', '+')]);
  }
  const united = split(trimmed, '\\cup');
  if (united.length > 1) return { type: 'union', items: united.map(read) };

  if (/^\\\{\s*\\\}$/.test(trimmed)) return words('\\emptyset');
  if (/^\\mathbb\s*(?:\{R\}|R)$/.test(trimmed)) return { ...REALS, items: [MINUS_INFINITY, PLUS_INFINITY] };
  const inner = enclosed(trimmed, '\\{', '\\}') ?? plainSet(trimmed);
  const members = inner === undefined ? [] : split(inner, ',');
  if (inner !== undefined && members.length <= MAX_ITEMS) return list(members.map(read));
  const [, bare = trimmed] = /^[([]\s*(\\begin\{(?:.(?!\\begin))*\\end\{\w+\})\s*[)\]]$/s.exec(trimmed) ?? [];
  const matrix = /^\\begin\{((?:[pbB]|small)?matrix|array)\}(?:\s*\{[lcr|\s]*\})?(.*)\\end\{\1\}$/s.exec(bare);
  if (matrix !== null) {
    const rows = (matrix[2] ?? '').split(/\\\\/).filter((row) => row.trim() !== '');
    return { type: 'matrix', rows: rows.map((row) => row.split('&').map(read)) };
  }
  const tuple = tupleOf(trimmed);
  if (tuple !== undefined) return { ...tuple, type: 'tuple', items: tuple.items.map(read) };
  return relationOf(trimmed, read) ?? quantityOf(trimmed) ?? words(trimmed);
}

function words(text: string): Answer {
  const isProse = !/[\\^_{}=<>+*/|]/.test(text);
  const numbers = withoutLastZeros(text);
  const plain = isProse ? withoutPunctuation(numbers) : withArgumentsInBraces(numbers);
  const cased = hasBothCases(plain) ? plain : plain.replace(/\\[A-Za-z]+|[A-Z]/g, inLowerCase);
  const spelled = cased.replace(/\\\\/g, '|').replace(/\\/g, ' ');
  // Digits on both sides of a space are two numbers.
  return { type: 'words', text: spelled.replace(/(?<=\d)\s+(?=\d)/g, '\n').replace(/[^\S\n]+/g, '') };
}

/** Whether a letter is one variable in upper case and another one in lower case. */
function hasBothCases(text: string): boolean {
  const letters = new Set(text.match(/(?<![A-Za-z])[A-Za-z](?![A-Za-z])/g));
  return [...letters].some((letter) => letter !== letter.toLowerCase() && letters.has(letter.toLowerCase()));
}

/** 2 for 2.0, and 2.5 for 2.50. */
export const withoutLastZeros = (text: string): string =>
  text.replace(/(?<![\d.])(\d+)\.(?:0+|(\d*[1-9])0*)(?![\d.])/g, (_, whole, part) =>
    part ? `${whole}.${part}` : whole,
  );

/** Removes quotes and punctuation; a point or comma between digits belongs to a number, 2:3 is a ratio, A' a name. */
const withoutPunctuation = (text: string): string =>
  text
    .replace(/(?<![A-Za-z\d])'([^']*)'(?![A-Za-z\d'])/g, '$1')
    .replace(/(?<=[A-Za-z]{2}\s*):|:(?=\s*[A-Za-z]{2})|^\s*:|:\s*$/g, '')
    .replace(/(?<![A-Z])'|'(?=[A-Za-z])/g, '')
    .replace(/(?<!\d\s*)[.,;"]|[.,;"](?!\s*\d)/g, '');

/** A letter in lower case; a command such as \Gamma stays as it is. */
const inLowerCase = (name: string) => (name.length > 1 ? name : name.toLowerCase());

/** A formula with each argument in braces, so that \foo{a}{bc} differs from \foo{ab}{c}. */
const withArgumentsInBraces = (text: string): string =>
  text
    .replace(/^\{([^{}]*)\}$/, '$1')
    .replace(/\\frac\s*(\d)\s*(\d)/g, '\\frac{$1}{$2}')
    .replace(/(\\[A-Za-z]+|[\^_])\s*(\d+(?:\.\d+)?)|(\\[A-Za-z]+\s|[\^_])\s*([A-Za-z])/g, '$1$3{$2$4}')
    .replace(/(?<![\\A-Za-z^_}\s]\s*)\{\s*([A-Za-z\d])\s*\}/g, '$1')
    .replace(/[\s.,;:"]+$/, '');

/** Flattens nested lists: {1 ± x, 2} has three members. */
function list(items: readonly Answer[]): Answer {
  const flat = items.flatMap((item) => (item.type === 'list' ? item.items : [item]));
  const [only] = flat;
  return only !== undefined && flat.length === 1 ? only : { type: 'list', items: flat };
}

function quantityOf(text: string): Quantity | undefined {
  const percent = text.endsWith('%');
  const expression = parseExpression(percent ? text.slice(0, -1) : text);
  if (expression === undefined) return undefined;
  return quantity(expression, percent);
}

export function quantity(expression: Expression, percent = false): Quantity {
  const values = Array.from({ length: POINTS }, (_, point) => valueAt(expression, { point }));
  return { type: 'quantity', expression, percent, exact: exactValue(expression), values };
}

const REALS = { type: 'tuple', open: '(', close: ')' } as const;
const infinite: Expression = { type: 'name', name: '\\infty' };
const PLUS_INFINITY = quantity(infinite);
const MINUS_INFINITY = quantity({
  type: 'binary',
  operator: '*',
  left: { type: 'number', digits: '-1' },
  right: infinite,
});

const OPERATORS = ['\\le', '\\ge', '\\ne', '<', '>', '='] as const;

/** Reads relations such as left = right; x > 1 and 1 < x \le 2 with one bare name are intervals. */
function relationOf(text: string, read: (part: string) => Answer): Answer | undefined {
  const sides: string[] = [];
  const operators: string[] = [];
  let rest = text;
  for (let next = nextOperator(rest); next !== undefined; next = nextOperator(rest)) {
    sides.push(rest.slice(0, next.at));
    operators.push(next.operator);
    rest = rest.slice(next.at + next.operator.length);
    if (operators.length > 2) return undefined;
  }
  sides.push(rest);
  const [left = '', middle = '', right = ''] = sides.map((side) => side.trim());
  const [first = '', second] = operators;
  if (sides.includes('') || first === '') return undefined;
  if (second !== undefined) {
    const [up, down] = [/^(?:<|\\le)$/, /^(?:>|\\ge)$/];
    if (isName(middle) && down.test(first) && down.test(second))
      return interval(middle, read(right), second === '>', read(left), first === '>');
    if (!isName(middle) || !up.test(first) || !up.test(second)) return undefined;
    return interval(middle, read(left), first === '<', read(right), second === '<');
  }
  if (first !== '=' && first !== '\\ne') {
    const strict = first === '<' || first === '>';
    const below = first === '<' || first === '\\le';
    if (isName(left)) {
      return below
        ? interval(left, MINUS_INFINITY, true, read(middle), strict)
        : interval(left, read(middle), strict, PLUS_INFINITY, true);
    }
    if (isName(middle)) {
      return below
        ? interval(middle, read(left), strict, PLUS_INFINITY, true)
        : interval(middle, MINUS_INFINITY, true, read(left), strict);
    }
  }
  return { type: 'relation', operator: first, left: read(left), right: read(middle) };
}

const interval = (variable: string, low: Answer, openLow: boolean, high: Answer, openHigh: boolean): Answer => ({
  type: 'tuple',
  open: openLow ? '(' : '[',
  close: openHigh ? ')' : ']',
  items: [low, high],
  variable: variable.replace(/[{}\s]/g, ''),
});

/** Whether a text is a variable, with or without a subscript. */
const isName = (text: string): boolean =>
  /^\\?[A-Za-z]+(?:_(?:\w|\{\w+\}))?$/.test(text) && /^(?:\\|.(?:_|$))/.test(text);

function nextOperator(text: string): { at: number; operator: string } | undefined {
  for (const at of topLevel(text)) {
    const operator = OPERATORS.find((candidate) => text.startsWith(candidate, at));
    if (operator === undefined) continue;
    if (operator.startsWith('\\') && /^[A-Za-z]/.test(text.slice(at + operator.length))) continue;
    return { at, operator };
  }
  return undefined;
}

function tupleOf(text: string): { open: string; close: string; items: string[] } | undefined {
  const open = text[0] ?? '';
  const close = text.at(-1) ?? '';
  if (!/[([]/.test(open) || !/[)\]]/.test(close)) return undefined;
  const inner = text.slice(1, -1);
  // The first bracket must be closed by the last one, not before.
  let depth = 0;
  for (const character of inner) {
    if (/[([]/.test(character)) depth++;
    else if (/[)\]]/.test(character) && --depth < 0) return undefined;
  }
  const items = split(inner, ',');
  return items.length > 1 && items.length <= MAX_ITEMS ? { open, close, items } : undefined;
}

function enclosed(text: string, open: string, close: string): string | undefined {
  if (!text.startsWith(open) || !text.endsWith(close)) return undefined;
  const inner = text.slice(open.length, text.length - close.length);
  return inner.includes(open) ? undefined : inner;
}

/** The inside of a set in plain text: braces around a comma that are no argument. */
const plainSet = (text: string): string | undefined => /^\{([^{}]*,[^{}]*)\}$/.exec(text)?.[1];

/** Splits at each `separator` outside all brackets; parts are trimmed. */
function split(text: string, separator: string): string[] {
  const parts: string[] = [];
  let start = 0;
  for (const at of topLevel(text)) {
    if (at < start || !text.startsWith(separator, at)) continue;
    parts.push(text.slice(start, at).trim());
    start = at + separator.length;
  }
  parts.push(text.slice(start).trim());
  return parts;
}

/** The positions outside all brackets. Round and square brackets close each other, as in (0, 1]. */
function* topLevel(text: string): Generator<number> {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i] ?? '';
    if (depth === 0) yield i;
    if (/[([{]/.test(character)) depth++;
    else if (/[)\]}]/.test(character)) depth = Math.max(0, depth - 1);
    else if (text.startsWith('\\begin{', i)) depth++;
    else if (text.startsWith('\\end{', i)) depth = Math.max(0, depth - 1);
  }
}
