/** Values of chat templates with the meaning that Python gives them: a template is written for jinja2. */
import type { Budget } from './budget.js';
import { floatText, quoted } from './python-text.js';

/**
 * `undefined` is jinja2's Undefined, `null` is None, a bigint is an int and a number is a float, a Map is a dict and an
 * array is a list.
 */
export type Value =
  | undefined
  | null
  | boolean
  | bigint
  | number
  | string
  | readonly Value[]
  | ReadonlyMap<Value, Value>
  | Tuple
  | Markup
  | Sequence
  | Callable
  | Attributes;

export class Tuple {
  readonly items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/**
 * The result of the filters `safe` and `escape`: a text of HTML. Adding a text to it writes that text in HTML, although
 * templates of chats use `safe` as if it did nothing.
 */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The text of `Markup`, which differs from it in sums alone. */
export const plain = (value: Value): Value => (value instanceof Markup ? value.text : value);

export const escaped = (text: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('>', '&gt;')
    .replaceAll('<', '&lt;')
    .replaceAll("'", '&#39;')
    .replaceAll('"', '&#34;');

/** A value that Python makes lazily. A generator is empty after its first use. */
export class Sequence {
  readonly kind: 'generator' | 'range' | 'dict_items' | 'dict_keys' | 'dict_values';
  #items: readonly Value[];

  constructor(kind: Sequence['kind'], items: readonly Value[]) {
    this.kind = kind;
    this.#items = items;
  }

  get size(): number {
    return this.#items.length;
  }

  take(): readonly Value[] {
    const items = this.#items;
    if (this.kind === 'generator') this.#items = [];
    return items;
  }
}

export type Named = ReadonlyMap<string, Value>;

/** A function, a macro or a method. */
export class Callable {
  readonly name: string;
  readonly call: (args: readonly Value[], named: Named) => Value;
  readonly facts: Readonly<Record<string, Value>>;
  /** Whether it takes markup as it is: a macro and a namespace. Other functions get its text. */
  readonly takesMarkup: boolean;

  constructor(name: string, call: Callable['call'], facts: Callable['facts'] = {}, takesMarkup = false) {
    this.name = name;
    this.call = call;
    this.facts = facts;
    this.takesMarkup = takesMarkup;
  }
}

/** An object with attributes alone: `loop`, a namespace, a cycler. */
export interface Attributes {
  readonly attribute: (name: string) => Value;
  /** Of a namespace. */
  readonly assign?: (name: string, value: Value) => void;
  /** Of a recursive loop and of a joiner. */
  readonly call?: Callable;
}

export const isMap = (value: Value): value is ReadonlyMap<Value, Value> => value instanceof Map;
export const isList = (value: Value): value is readonly Value[] => Array.isArray(value);
/** An int, a float, or a bool, which is an int. */
export const isNumber = (value: Value): value is bigint | number | boolean =>
  typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean';
export const isAttributes = (value: Value): value is Attributes =>
  typeof value === 'object' && value !== null && 'attribute' in value;

export function typeName(value: Value): string {
  if (value === undefined) return 'Undefined';
  if (value === null) return 'NoneType';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'number') return 'float';
  if (typeof value === 'string') return 'str';
  if (isList(value)) return 'list';
  if (isMap(value)) return 'dict';
  if (value instanceof Tuple) return 'tuple';
  if (value instanceof Sequence) return value.kind;
  return value instanceof Callable ? 'function' : 'object';
}

export function truthy(value: Value): boolean {
  if (isMap(value)) return value.size > 0;
  if (isList(value)) return value.length > 0;
  if (value instanceof Tuple) return value.items.length > 0;
  if (value instanceof Markup) return value.text !== '';
  if (value instanceof Sequence) return value.kind === 'generator' || value.size > 0;
  return Boolean(value);
}

/** The code points of a text. */
export const points = (text: string): readonly string[] => Array.from(text);
const ASTRAL = /[\ud800-\udfff]/;
export const isAstral = (text: string) => ASTRAL.test(text);
export const textLength = (text: string): number => (isAstral(text) ? points(text).length : text.length);

/** The entries of a value in a loop. @throws Error for a value that is no iterable */
export function iterate(value: Value, budget: Budget): readonly Value[] {
  const items = itemsOf(value);
  if (items === undefined) throw new Error(`'${typeName(value)}' object is not iterable`);
  budget.entries(items.length);
  return items;
}

export function itemsOf(value: Value): readonly Value[] | undefined {
  if (value === undefined) return [];
  if (typeof value === 'string') return points(value);
  if (isList(value)) return value;
  if (isMap(value)) return [...value.keys()];
  if (value instanceof Tuple) return value.items;
  return value instanceof Sequence ? value.take() : undefined;
}

/** Python's `len`. @throws Error for a value without a length */
export function lengthOf(value: Value): bigint {
  if (value === undefined) return 0n;
  if (typeof value === 'string') return BigInt(textLength(value));
  if (isList(value)) return BigInt(value.length);
  if (isMap(value)) return BigInt(value.size);
  if (value instanceof Tuple) return BigInt(value.items.length);
  if (value instanceof Sequence && value.kind !== 'generator') return BigInt(value.size);
  throw new Error(`object of type '${typeName(value)}' has no len()`);
}

/** @throws Error for a value that Python cannot hash */
export function keyOf(value: Value): Value {
  if (isList(value) || isMap(value)) throw new Error(`unhashable type: '${typeName(value)}'`);
  if (value instanceof Tuple) throw new Error('a tuple as a key is not supported');
  return value;
}

/** The key under which a dictionary has an entry: 1, 1.0 and True are one key. The key itself if there is no entry. */
export function keyIn(map: ReadonlyMap<Value, Value>, key: Value): Value {
  if (map.has(key) || !isNumber(key)) return key;
  const number = Number(key);
  if (!Number.isInteger(number)) return key;
  const whole = BigInt(key);
  const equal = [
    whole,
    ...(BigInt(number) === whole ? [number] : []),
    ...(whole === 0n || whole === 1n ? [whole === 1n] : []),
  ];
  return equal.find((each) => map.has(each)) ?? key;
}

/** A dictionary with these entries, the last of equal keys. As in Python it keeps the first of these keys. */
export function dictOf(entries: Iterable<readonly [Value, Value]>): Map<Value, Value> {
  const map = new Map<Value, Value>();
  for (const [key, value] of entries) map.set(keyIn(map, keyOf(key)), value);
  return map;
}

const numberOf = (value: bigint | number | boolean) => (typeof value === 'boolean' ? BigInt(value) : value);

/** Python's `float(value)`. @throws Error for a whole number that is too large */
export function exactFloat(value: bigint | number | boolean): number {
  const float = Number(value);
  if (typeof value === 'bigint' && !Number.isFinite(float)) throw new Error('the number is too large for a float');
  return float;
}

/** Python's `==`. */
export function equals(left: Value, right: Value, budget: Budget): boolean {
  budget.spend(1);
  if (left === right) return true;
  // biome-ignore lint/suspicious/noDoubleEquals: an int equals a float of the same value
  if (isNumber(left) && isNumber(right)) return numberOf(left) == numberOf(right);
  if (isMap(left) && isMap(right)) {
    if (left.size !== right.size) return false;
    for (const [key, value] of left) {
      const other = keyIn(right, key);
      if (!right.has(other) || !equals(value, right.get(other), budget)) return false;
    }
    return true;
  }
  if (left instanceof Sequence && right instanceof Sequence) return equalSequences(left, right, budget);
  const lists = isList(left) && isList(right) ? [left, right] : undefined;
  const tuples = left instanceof Tuple && right instanceof Tuple ? [left.items, right.items] : undefined;
  const [first, second] = lists ?? tuples ?? [];
  if (first === undefined || second === undefined) return false;
  return first.length === second.length && first.every((item, i) => equals(item, second[i], budget));
}

/** @throws Error for views of dictionaries, which Python compares as sets */
function equalSequences(left: Sequence, right: Sequence, budget: Budget): boolean {
  if (left.kind !== right.kind) return false;
  if (left.kind === 'range') return equals([...left.take()], [...right.take()], budget);
  if (left.kind === 'dict_keys' || left.kind === 'dict_items') throw new Error(`drmas does not compare ${left.kind}`);
  return false;
}

/** Negative, 0 or positive as Python orders the values. @throws Error for values that have no order */
export function compare(left: Value, right: Value, budget: Budget): number {
  budget.spend(1);
  if (isNumber(left) && isNumber(right)) {
    const [first, second] = [numberOf(left), numberOf(right)];
    return first < second ? -1 : first > second ? 1 : 0;
  }
  if (typeof left === 'string' && typeof right === 'string') {
    budget.spend(Math.min(left.length, right.length) / 64);
    return compareTexts(left, right);
  }
  const first = left instanceof Tuple ? left.items : isList(left) ? left : undefined;
  const second = right instanceof Tuple ? right.items : isList(right) ? right : undefined;
  if (first === undefined || second === undefined || typeName(left) !== typeName(right))
    throw new Error(`'<' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`);
  for (const [i, item] of first.entries()) {
    if (i >= second.length) return 1;
    if (!equals(item, second[i], budget)) return compare(item, second[i], budget);
  }
  return first.length - second.length;
}

/** Order by code points: in UTF-16 an astral character comes before U+E000. */
function compareTexts(left: string, right: string): number {
  if (!isAstral(left) && !isAstral(right)) return left < right ? -1 : left > right ? 1 : 0;
  const [first, second] = [points(left), points(right)];
  for (const [i, character] of first.entries()) {
    const difference = (character.codePointAt(0) ?? 0) - (second[i]?.codePointAt(0) ?? -1);
    if (difference !== 0) return difference;
  }
  return first.length - second.length;
}

/** Python's `str`. @throws Error for a value whose text differs between two runs in Python */
export function textOf(value: Value, budget: Budget): string {
  if (typeof value === 'string') return value;
  if (value instanceof Markup) return value.text;
  return value === undefined ? '' : repr(value, budget);
}

/** Python's `repr`, which shows texts in quotes. */
export function repr(value: Value, budget: Budget): string {
  budget.spend(1);
  if (value === undefined) return 'Undefined';
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return floatText(value);
  if (typeof value === 'string') return budget.text(quoted(value));
  const list = (items: readonly Value[]) =>
    joined(
      items.map((item) => repr(item, budget)),
      budget,
    );
  if (isList(value)) return `[${list(value)}]`;
  if (isMap(value)) {
    const entries = [...value].map(([key, item]) => `${repr(key, budget)}: ${repr(item, budget)}`);
    return `{${joined(entries, budget)}}`;
  }
  if (value instanceof Tuple) return value.items.length === 1 ? `(${list(value.items)},)` : `(${list(value.items)})`;
  if (value instanceof Sequence && value.kind.startsWith('dict_')) return `${value.kind}([${list(value.take())}])`;
  throw new Error(`it writes a value of type ${typeName(value)}`);
}

function joined(parts: readonly string[], budget: Budget): string {
  budget.length(parts.reduce((sum, { length }) => sum + length + 2, 0));
  return parts.join(', ');
}

/** A value of JavaScript, or one that is a template's already, as a template reads it. */
export function templateValue(value: unknown): Value {
  if (value === null || value === undefined || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (value instanceof Map || value instanceof Callable) return value;
  if (Array.isArray(value)) return value.map(templateValue);
  if (typeof value !== 'object') throw new Error(`a template cannot read a value of type ${typeof value}`);
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return new Map(entries.map(([key, each]): [Value, Value] => [key, templateValue(each)]));
}
