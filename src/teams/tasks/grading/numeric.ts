/** The complex values of expressions in double precision, at fixed points for their free names. */
import { ownValue } from '@drmas/engine/errors';
import { randomKey, uniformAt } from '@drmas/engine/math';
import { type Expression, isNamedFunction, nodesOf, partsOf } from './expression.js';

interface Complex {
  readonly re: number;
  readonly im: number;
}

/** The number of points at which two expressions are compared. */
export const POINTS = 4;
/** Further points, far apart, for expressions whose functions hide their operands near 0. */
export const FAR_POINTS = 60;

const real = (re: number): Complex => ({ re, im: 0 });
const nowhere: Complex = real(Number.NaN);
const add = (a: Complex, b: Complex): Complex => ({ re: a.re + b.re, im: a.im + b.im });
const subtract = (a: Complex, b: Complex): Complex => ({ re: a.re - b.re, im: a.im - b.im });
const multiply = (a: Complex, b: Complex): Complex => ({
  re: a.re * b.re - a.im * b.im,
  im: a.re * b.im + a.im * b.re,
});
function divide(a: Complex, b: Complex): Complex {
  const square = b.re * b.re + b.im * b.im;
  return { re: (a.re * b.re + a.im * b.im) / square, im: (a.im * b.re - a.re * b.im) / square };
}
/** A power, which is never 0: one too small for a double has no value. */
const notZero = (value: number) => value || Number.NaN;
const exp = (z: Complex): Complex => {
  const size = notZero(Math.exp(z.re));
  return { re: size * Math.cos(z.im), im: z.im === 0 ? 0 : size * Math.sin(z.im) };
};
const log = (z: Complex): Complex => ({ re: Math.log(Math.hypot(z.re, z.im)), im: Math.atan2(z.im, z.re) });
const sin = ({ re, im }: Complex): Complex => ({ re: Math.sin(re) * Math.cosh(im), im: Math.cos(re) * Math.sinh(im) });
const cos = ({ re, im }: Complex): Complex => ({ re: Math.cos(re) * Math.cosh(im), im: -Math.sin(re) * Math.sinh(im) });

function power(base: Complex, exponent: Complex): Complex {
  const { re: n } = exponent;
  if (base.im === 0 && exponent.im === 0 && (base.re >= 0 || Number.isInteger(n)))
    return real(base.re === 0 ? base.re ** n : notZero(base.re ** n));
  if (exponent.im === 0 && Number.isInteger(n) && Math.abs(n) <= 64) {
    let product = real(1);
    for (let i = 0; i < Math.abs(n); i++) product = multiply(product, base);
    return n < 0 ? divide(real(1), product) : product;
  }
  return exp(multiply(exponent, log(base)));
}

/** Odd roots of negative numbers are negative, as at school. */
function root(value: Complex, degree: Complex): Complex {
  const odd = degree.im === 0 && Math.abs(degree.re % 2) === 1;
  if (odd && value.im === 0 && value.re < 0) return real(-((-value.re) ** (1 / degree.re)));
  if (degree.re === 2 && value.im === 0) {
    return value.re >= 0 ? real(Math.sqrt(value.re)) : { re: 0, im: Math.sqrt(-value.re) };
  }
  return power(value, divide(real(1), degree));
}

const ofReals =
  (f: (...x: number[]) => number) =>
  (...z: Complex[]): Complex =>
    z.every(({ im }) => im === 0) ? real(f(...z.map(({ re }) => re))) : nowhere;

function binomial(n: number, k: number): number {
  if (!Number.isInteger(n) || !Number.isInteger(k)) return factorial(n) / (factorial(k) * factorial(n - k));
  if (k < 0 || n < k || n > 1000) return Number.NaN;
  let product = 1;
  for (let i = 1; i <= Math.min(k, n - k); i++) product = (product * (n - i + 1)) / i;
  return Math.round(product);
}

function factorial(n: number): number {
  if (!Number.isInteger(n)) return gamma(n + 1);
  if (n < 0 || n > 170) return Number.NaN;
  let product = 1;
  for (let i = 2; i <= n; i++) product *= i;
  return product;
}

/** The gamma function by Lanczos's series (g = 7), to about 15 digits. */
function gamma(x: number): number {
  if (x < 0.5) return Math.PI / (Math.sin(Math.PI * x) * gamma(1 - x));
  const t = x + 6.5;
  const series = LANCZOS.reduce((sum, coefficient, n) => sum + coefficient / (x + n), 0.9999999999998099);
  return Math.sqrt(2 * Math.PI) * t ** (x - 0.5) * Math.exp(-t) * series;
}
const LANCZOS = [
  676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
  -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
];

/** The whole number that a number equals but for rounding, as 4.35 * 100 does. */
function whole(x: number): number | undefined {
  const nearest = Math.round(x);
  return Math.abs(x - nearest) <= ROUNDING * Math.abs(x) ? nearest : undefined;
}

const functions: Readonly<Record<string, (...z: Complex[]) => Complex>> = {
  root: (z = nowhere, degree = nowhere) => root(z, degree),
  sin: (z = nowhere) => sin(z),
  cos: (z = nowhere) => cos(z),
  tan: (z = nowhere) => divide(sin(z), cos(z)),
  cot: (z = nowhere) => divide(cos(z), sin(z)),
  sec: (z = nowhere) => divide(real(1), cos(z)),
  csc: (z = nowhere) => divide(real(1), sin(z)),
  exp: (z = nowhere) => exp(z),
  ln: (z = nowhere) => log(z),
  log: (z = nowhere) => log(z),
  abs: (z = nowhere) => real(Math.hypot(z.re, z.im)),
  arcsin: ofReals(Math.asin),
  arccos: ofReals(Math.acos),
  arctan: ofReals(Math.atan),
  sinh: ofReals(Math.sinh),
  cosh: ofReals(Math.cosh),
  tanh: ofReals(Math.tanh),
  floor: ofReals((x) => whole(x) ?? Math.floor(x)),
  ceiling: ofReals((x) => whole(x) ?? Math.ceil(x)),
  factorial: ofReals(factorial),
  binomial: ofReals(binomial),
};

const constants: Readonly<Record<string, Complex>> = {
  i: { re: 0, im: 1 },
  e: real(Math.E),
  '\\pi': real(Math.PI),
};

export interface Place {
  /** The number of the values of free names: near 0 below POINTS, below POINTS + FAR_POINTS up to `reach`. */
  readonly point: number;
  readonly reach?: number;
  /** Far from 0 all names are positive. */
  readonly positive?: boolean;
  /** Floors and ceilings are their operands. */
  readonly smooth?: boolean;
}

/** The value of a free name (infinity is one) at a point; from the third point on it may be negative. */
function valueOfName(name: string, { point, reach = 0, positive }: Place): Complex {
  const constant = ownValue(constants, name);
  if (constant !== undefined) return constant;
  const key = randomKey('grading', name);
  if (point >= POINTS) {
    const far = 0.05 * (reach / 0.05) ** uniformAt(key, 2 * point); // from 0.05, as many of each magnitude
    return real(!positive && uniformAt(key, 2 * point + 1) < 0.5 ? -far : far);
  }
  const size = 0.3 + 2 * uniformAt(key, 2 * point);
  return real(point >= 2 && uniformAt(key, 2 * point + 1) < 0.5 ? -size : size);
}

/** A function that is known by its name alone: it changes with each of its arguments. */
function namedFunction(name: string, values: readonly Complex[]): Complex {
  const key = randomKey('grading', name);
  const phase = values.reduce(
    (sum, { re, im }, n) =>
      sum + (1 + uniformAt(key, 3 * n)) * Math.asinh(re) + (1 + uniformAt(key, 3 * n + 1)) * Math.asinh(im),
    6 * uniformAt(key, 3 * values.length),
  );
  return real(Math.sin(phase));
}

const TOLERANCE = 1e-10;
/** The rounding of a double, relative to the larger term of a sum. */
const ROUNDING = 1e-14;

/** The value of an expression, and how far it can be trusted. */
export interface Value extends Complex {
  /** The error that terms which cancel leave. */
  readonly error: number;
}

const sizeOf = ({ re, im }: Complex) => (im === 0 ? Math.abs(re) : Math.hypot(re, im));
const exactly = ({ re, im }: Complex): Value => ({ re, im, error: 0 });

const operations = { '+': add, '-': subtract, '*': multiply, '/': divide, '^': power };

/** The expression's value at a place; NaN if it has none there. */
export function valueAt(expression: Expression, place: Place): Value {
  if (expression.type === 'number') return exactly(real(Number(expression.digits)));
  if (expression.type === 'name') return exactly(valueOfName(expression.name, place));
  const parts = partsOf(expression).map((part) => valueAt(part, place));
  return combine(expression, parts, place);
}

function combine(expression: Expression, parts: readonly Value[], { smooth }: Place): Value {
  if (expression.type === 'binary' && expression.operator !== '^') {
    const [left = exactly(nowhere), right = exactly(nowhere)] = parts;
    const { re, im } = operations[expression.operator](left, right);
    return { re, im, error: errorOf(expression.operator, left, right) };
  }
  const f = functionOf(expression, smooth === true);
  const value = f(...parts);
  let error = 0;
  for (const [n, part] of parts.entries()) {
    if (part.error === 0) continue;
    const moved = f(...parts.with(n, exactly({ re: part.re + part.error, im: part.im })));
    error = Math.max(error, sizeOf(subtract(moved, value)) || 0);
  }
  return { re: value.re, im: value.im, error };
}

function functionOf(expression: Expression, smooth: boolean): (...z: Complex[]) => Complex {
  if (expression.type !== 'call') return (base = nowhere, exponent = nowhere) => power(base, exponent);
  const { name } = expression;
  if (smooth && (name === 'floor' || name === 'ceiling')) return (z = nowhere) => z;
  if (isNamedFunction(name)) return (...z) => namedFunction(name, z);
  return ownValue(functions, name) ?? (() => nowhere);
}

function errorOf(operator: '+' | '-' | '*' | '/', left: Value, right: Value): number {
  const isSum = operator === '+' || operator === '-';
  if (!isSum && left.error === 0 && right.error === 0) return 0;
  const [a, b] = [sizeOf(left), sizeOf(right)];
  if (isSum) return Math.max(left.error, right.error, ROUNDING * a, ROUNDING * b);
  return operator === '*' ? a * right.error + b * left.error : (left.error + (a / b) * right.error) / b;
}

/**
 * Whether two values agree up to rounding, relative to their size and to the terms that cancelled, or up to `margin`
 * times as much. A value that is not finite agrees with none.
 */
export function agree(a: Complex & Partial<Value>, b: Complex & Partial<Value>, margin = 1): boolean {
  const scale = Math.max(sizeOf(a), sizeOf(b));
  const tolerance = Math.max(TOLERANCE * scale, a.error ?? 0, b.error ?? 0);
  return Number.isFinite(scale) && sizeOf(subtract(a, b)) <= margin * tolerance;
}

/** A change that shows is so many times larger than one that is taken for rounding. */
const MARGIN = 10;

export const scaled = (value: Value, ratio: Complex): Value => ({
  ...multiply(value, ratio),
  error: value.error * sizeOf(ratio),
});

/** The most numbers and names of an expression whose parts are changed one by one. */
const MAX_LEAVES = 200;

/**
 * Whether each number and each name shows in the values: a change of any one changes the value at a point. In
 * 10^{20} + x, in \\tanh 20 and in 2^{1/100000} one does not, so that equal values say nothing about it. Values up to a
 * factor show what changes their ratios.
 */
export function everyPartShows(expression: Expression, upToFactor: boolean): boolean {
  if (nodesOf(expression).filter((node) => partsOf(node).length === 0).length > MAX_LEAVES) return false;
  const rows: Value[][] = [];
  let hidden: number[] | undefined;
  for (let point = 0; point < POINTS && hidden?.length !== 0; point++) {
    const row = changedValues(expression, { point, smooth: true });
    if (!Number.isFinite(sizeOf(row[0] ?? nowhere))) continue;
    rows.push(row);
    const isHidden = (n: number) => {
      const [before, after] = [row[0] ?? nowhere, row[n] ?? nowhere];
      if (!upToFactor) return agree(before, after, MARGIN);
      const [firstBefore, firstAfter] = [rows[0]?.[0] ?? nowhere, rows[0]?.[n] ?? nowhere];
      return agree(divide(before, firstBefore), divide(after, firstAfter), MARGIN);
    };
    hidden = (hidden ?? [...row.keys()].slice(1)).filter(isHidden);
  }
  return hidden?.length === 0;
}

/** The value at a place, and then the values with one number or name changed. */
function changedValues(expression: Expression, place: Place): Value[] {
  if (expression.type === 'number' || expression.type === 'name') {
    const value = valueAt(expression, place);
    // The sign of -x is a factor of -1 and not a number of the answer.
    if (expression.type === 'number' && expression.digits.startsWith('-')) return [value];
    const other = expression.type === 'number' ? real(nextNumber(expression.digits)) : multiply(value, real(1.25));
    return [value, exactly(other)];
  }
  const parts = partsOf(expression).map((part) => changedValues(part, place));
  const values = parts.map(([value]) => value ?? exactly(nowhere));
  const changed = parts.flatMap(([, ...others], n) =>
    others.map((other) => combine(expression, values.with(n, other), place)),
  );
  return [combine(expression, values, place), ...changed];
}

/** The number with the next last digit: 3 after 2, 0.26 after 0.25. */
function nextNumber(digits: string): number {
  const decimals = (digits.split('.')[1] ?? '').replace(/0+$/, '').length;
  return Number(digits) + 10 ** -decimals;
}

export { type Complex, divide as quotient, sizeOf };
