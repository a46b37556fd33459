/** Python's operators on values of a template. */
import type { Budget } from './budget.js';
import { percent } from './format-text.js';
import {
  equals,
  escaped,
  exactFloat,
  isList,
  isMap,
  isNumber,
  itemsOf,
  keyIn,
  keyOf,
  Markup,
  plain,
  Tuple,
  typeName,
  type Value,
} from './values.js';

/** @throws Error for values that the operator does not take */
export function calculate(operator: string, left: Value, right: Value, budget: Budget): Value {
  if (left instanceof Markup || right instanceof Markup) return withMarkup(operator, left, right, budget);
  if (isNumber(left) && isNumber(right)) return arithmetic(operator, left, right, budget);
  if (operator === '%' && typeof left === 'string') return percent(left, right, budget);
  if (operator === '+') {
    if (typeof left === 'string' && typeof right === 'string') return budget.text(left + right);
    if (isList(left) && isList(right)) return listOf([...left, ...right], budget);
    if (left instanceof Tuple && right instanceof Tuple)
      return new Tuple(listOf([...left.items, ...right.items], budget));
  }
  if (operator === '*') {
    if (typeof right === 'bigint' || typeof right === 'boolean') return repeated(left, right, operator, budget);
    if (typeof left === 'bigint' || typeof left === 'boolean') return repeated(right, left, operator, budget);
  }
  return refuse(operator, left, right);
}

/** A sum of markup and a text writes the text in HTML; other operators see a text. */
function withMarkup(operator: string, left: Value, right: Value, budget: Budget): Value {
  if (operator === '%' && left instanceof Markup) throw new Error("drmas does not play % of what 'safe' returns");
  if (operator !== '+') {
    const result = calculate(operator, plain(left), plain(right), budget);
    return operator === '*' && typeof result === 'string' ? new Markup(result) : result;
  }
  const parts = [left, right].map((value) => {
    if (value instanceof Markup) return value.text;
    return typeof value === 'string' ? escaped(value) : refuse(operator, left, right);
  });
  return new Markup(budget.text(parts.join('')));
}

function refuse(operator: string, left: Value, right: Value): never {
  throw new Error(`unsupported operand types for ${operator}: '${typeName(left)}' and '${typeName(right)}'`);
}

function listOf(items: readonly Value[], budget: Budget): readonly Value[] {
  budget.entries(items.length);
  return items;
}

function repeated(value: Value, times: bigint | boolean, operator: string, budget: Budget): Value {
  const count = Math.max(0, Number(times));
  if (typeof value === 'string') {
    budget.length(value.length * count);
    return value.repeat(value === '' ? 0 : count);
  }
  const items = value instanceof Tuple ? value.items : value;
  if (!isList(items)) return refuse(operator, value, BigInt(times));
  if (items.length === 0) return value;
  budget.entries(items.length * count);
  const list = Array.from({ length: count }, () => items).flat();
  return value instanceof Tuple ? new Tuple(list) : list;
}

function arithmetic(
  operator: string,
  a: bigint | number | boolean,
  b: bigint | number | boolean,
  budget: Budget,
): Value {
  const [left, right] = [typeof a === 'boolean' ? BigInt(a) : a, typeof b === 'boolean' ? BigInt(b) : b];
  if (['/', '//', '%'].includes(operator) && Number(right) === 0) throw new Error('division by zero');
  if (typeof left === 'bigint' && typeof right === 'bigint') {
    if (operator === '/') return quotient(left, right);
    if (operator !== '**' || right >= 0n) return budget.integer(integers(operator, left, right, budget));
    if (left === 0n) throw new Error('0 cannot be raised to a negative power');
    return quotient(1n, power(left, -right, budget));
  }
  return floats(operator, exactFloat(left), exactFloat(right), budget);
}

const bits = (value: bigint) => value.toString(2).length;
const EXACT = BigInt(Number.MAX_SAFE_INTEGER);
const isExact = (value: bigint) => value <= EXACT && value >= -EXACT;
/** More bits than a float has, so that rounding sees on which side of a half the rest lies. */
const QUOTIENT_BITS = 66;

/** Whole numbers divided, rounded once. @throws Error for a result that is too large */
function quotient(left: bigint, right: bigint): number {
  if (right === 0n) throw new Error('division by zero');
  if (isExact(left) && isExact(right)) return Number(left) / Number(right);
  const isNegative = left < 0n !== right < 0n;
  const [above, below] = [left < 0n ? -left : left, right < 0n ? -right : right];
  const shift = Math.max(0, QUOTIENT_BITS - (bits(above) - bits(below)));
  const shifted = above << BigInt(shift);
  const whole = shifted / below;
  const size = Number(shifted % below === 0n ? whole : whole | 1n);
  const half = Math.floor(shift / 2);
  const value = size * 2 ** -half * 2 ** -(shift - half);
  if (!Number.isFinite(value)) throw new Error('the result is too large for a float');
  return isNegative ? -value : value;
}

function integers(operator: string, left: bigint, right: bigint, budget: Budget): bigint {
  const rest = () => ((left % right) + right) % right;
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '%':
      return rest();
    case '//':
      return (left - rest()) / right;
    default:
      return power(left, right, budget);
  }
}

function power(base: bigint, exponent: bigint, budget: Budget): bigint {
  if (base === 0n || base === 1n) return exponent === 0n ? 1n : base;
  if (base === -1n) return exponent % 2n === 0n ? 1n : -1n;
  budget.digits(base.toString(2).length * Number(exponent));
  return base ** exponent;
}

function floats(operator: string, left: number, right: number, budget: Budget): number {
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
    case '%':
      return divided(left, right)[1];
    case '//':
      return divided(left, right)[0];
    default:
      return floatPower(left, right, budget);
  }
}

/** Python's `divmod` of floats. */
function divided(left: number, right: number): readonly [whole: number, rest: number] {
  let rest = left % right;
  let whole = (left - rest) / right;
  if (rest === 0) rest = right < 0 ? -0 : 0;
  else if (rest < 0 !== right < 0) {
    rest += right;
    whole--;
  }
  if (whole === 0) return [left / right < 0 || Object.is(left / right, -0) ? -0 : 0, rest];
  const floor = Math.floor(whole);
  return [whole - floor > 0.5 ? floor + 1 : floor, rest];
}

/** @throws Error for fractions as exponents: JavaScript and Python's C library round such powers differently */
function floatPower(left: number, right: number, budget: Budget): number {
  if (left === 0 && right < 0) throw new Error('0.0 cannot be raised to a negative power');
  if (left === 0 || left === 1 || right === 0 || right === 1 || !Number.isFinite(left) || !Number.isFinite(right))
    return Math.abs(left) === 1 ? 1 : left ** right;
  if (left > 0 && right === 0.5) return Math.sqrt(left);
  if (!Number.isInteger(right)) throw new Error('drmas does not play ** with a fraction as exponent');
  // A float is a whole number over a power of two: its powers are computed exactly and rounded once.
  const [above, below] = fraction(left);
  const exponent = BigInt(Math.abs(right));
  const [top, bottom] = [power(above, exponent, budget), power(below, exponent, budget)];
  return right < 0 ? quotient(bottom, top) : quotient(top, bottom);
}

/** A finite float as a fraction. */
function fraction(value: number): readonly [bigint, bigint] {
  let [whole, below] = [value, 1n];
  while (!Number.isInteger(whole)) {
    whole *= 2;
    below *= 2n;
  }
  return [BigInt(whole), below];
}

/** Python's `in`. @throws Error for a value that contains nothing */
export function contains(container: Value, item: Value, budget: Budget): boolean {
  if (typeof container === 'string') {
    if (typeof item !== 'string') throw new Error(`'in <str>' requires a text, not ${typeName(item)}`);
    budget.spend(container.length / 64);
    return container.includes(item);
  }
  if (isMap(container)) return !(item instanceof Tuple) && container.has(keyIn(container, keyOf(item)));
  const items = itemsOf(container);
  if (items === undefined) throw new Error(`argument of type '${typeName(container)}' is not iterable`);
  budget.spend(items.length / 8);
  return items.some((each) => equals(each, item, budget));
}

/** Entries from `start` to `stop` in steps, as Python's slices count them. */
export function sliced<T>(items: readonly T[], [from, to, by]: readonly (number | undefined)[]): T[] {
  const step = by ?? 1;
  if (step === 0) throw new Error('slice step cannot be zero');
  const { length } = items;
  const bound = (value: number | undefined, otherwise: number) => {
    if (value === undefined) return otherwise;
    const place = value < 0 ? value + length : value;
    return Math.max(step > 0 ? 0 : -1, Math.min(step > 0 ? length : length - 1, place));
  };
  const start = bound(from, step > 0 ? 0 : length - 1);
  const stop = bound(to, step > 0 ? length : -1);
  if (step === 1) return items.slice(start, Math.max(start, stop));
  const result: T[] = [];
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) result.push(...items.slice(i, i + 1));
  return result;
}
