/** The complex values of expressions in double precision, at fixed points for their free names. */
import { randomKey, uniformAt } from '../../../base/math.js';
import type { Expression } from './expression.js';

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
  if (!Number.isInteger(n) || !Number.isInteger(k) || k < 0 || n < k || n > 1000) return Number.NaN;
  let product = 1;
  for (let i = 1; i <= Math.min(k, n - k); i++) product = (product * (n - i + 1)) / i;
  return Math.round(product);
}

function factorial(n: number): number {
  if (!Number.isInteger(n) || n < 0 || n > 170) return Number.NaN;
  let product = 1;
  for (let i = 2; i <= n; i++) product *= i;
  return product;
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
  floor: ofReals(Math.floor),
  ceiling: ofReals(Math.ceil),
  factorial: ofReals(factorial),
  binomial: ofReals(binomial),
};

const constants: Readonly<Record<string, Complex>> = {
  i: { re: 0, im: 1 },
  e: real(Math.E),
  '\\pi': real(Math.PI),
};

/** The value of a free name (infinity is one) at a point; from the second point on it may be negative. */
function valueOfName(name: string, point: number): Complex {
  const constant = Object.hasOwn(constants, name) ? constants[name] : undefined;
  if (constant !== undefined) return constant;
  const key = randomKey('grading', name);
  if (point >= POINTS) {
    const far = 0.05 * 40_000 ** uniformAt(key, 2 * point); // 0.05 to 2000, as many of each magnitude
    return real(uniformAt(key, 2 * point + 1) < 0.5 ? -far : far);
  }
  const size = 0.3 + 2 * uniformAt(key, 2 * point);
  return real(point >= 2 && uniformAt(key, 2 * point + 1) < 0.5 ? -size : size);
}

const TOLERANCE = 1e-10;
/** The rounding of a double, relative to the larger term of a sum. */
const ROUNDING = 1e-14;

/** The value of an expression, and how far it can be trusted. */
export interface Value extends Complex {
  /** The error that terms which cancel leave. */
  readonly error: number;
  /** Whether a part of the expression is too small beside another one to show in the value. */
  readonly absorbs: boolean;
}

const sizeOf = ({ re, im }: Complex) => (im === 0 ? Math.abs(re) : Math.hypot(re, im));
const exactly = ({ re, im }: Complex): Value => ({ re, im, error: 0, absorbs: false });
const ONE = real(1);
/** Whether a value does not show beside another one. */
function isTiny(value: Complex, beside = ONE): boolean {
  const size = sizeOf(value);
  return size > 0 && size < TOLERANCE * sizeOf(beside);
}
/** Functions that are near 1 for a small argument. */
const nearOne = new Set(['exp', 'cos', 'cosh', 'sec']);

const operations = { '+': add, '-': subtract, '*': multiply, '/': divide, '^': power };

/** The expression's value with its free names at point 0..POINTS + FAR_POINTS - 1; NaN if it has none there. */
export function valueAt(expression: Expression, point: number): Value {
  switch (expression.type) {
    case 'number':
      return exactly(real(Number(expression.digits)));
    case 'name':
      return exactly(valueOfName(expression.name, point));
    case 'call': {
      const f = Object.hasOwn(functions, expression.name) ? functions[expression.name] : undefined;
      const values = expression.arguments.map((argument) => valueAt(argument, point));
      const value = f === undefined ? nowhere : f(...values);
      const absorbs = values.some((each) => each.absorbs || (nearOne.has(expression.name) && isTiny(each)));
      return { re: value.re, im: value.im, error: 0, absorbs };
    }
    case 'binary': {
      const { operator } = expression;
      const [left, right] = [valueAt(expression.left, point), valueAt(expression.right, point)];
      const value = operations[operator](left, right);
      const isSum = operator === '+' || operator === '-';
      const hides = isSum ? isTiny(left, right) || isTiny(right, left) : operator === '^' && isTiny(right);
      const absorbs = left.absorbs || right.absorbs || hides;
      return { re: value.re, im: value.im, error: errorOf(operator, left, right), absorbs };
    }
  }
}

function errorOf(operator: keyof typeof operations, left: Value, right: Value): number {
  const isSum = operator === '+' || operator === '-';
  if (!isSum && left.error === 0 && right.error === 0) return 0;
  const [a, b] = [sizeOf(left), sizeOf(right)];
  switch (operator) {
    case '+':
    case '-':
      return Math.max(left.error, right.error, ROUNDING * a, ROUNDING * b);
    case '*':
      return a * right.error + b * left.error;
    case '/':
      return (left.error + (a / b) * right.error) / b;
    case '^':
      return 0;
  }
}

/**
 * Whether two values agree up to rounding, relative to their size and to the terms that cancelled. A value that is not
 * finite agrees with none.
 */
export function agree(a: Complex & Partial<Value>, b: Complex & Partial<Value>): boolean {
  const scale = Math.max(sizeOf(a), sizeOf(b));
  return Number.isFinite(scale) && sizeOf(subtract(a, b)) <= Math.max(TOLERANCE * scale, a.error ?? 0, b.error ?? 0);
}

export { type Complex, divide as quotient };
