/** Exact arithmetic: the fractions of expressions of numbers, and the equality of expressions by algebra. */
import { randomKey, uniformAt } from '@drmas/engine/math';
import { type Expression, hasVariables, partsOf } from './expression.js';
import { sizeOf, valueAt } from './numeric.js';

/** A fraction, not reduced; the denominator is positive. */
export interface Rational {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/**
 * The size of the largest exact number in bits; larger ones are left to floating point, so that no expression is slow.
 */
const MAX_BITS = 20_000;

/**
 * The exact value of an expression of numbers with + - * / ^ ! and binomials, or `undefined` for any other. Bases are
 * ignored. Floors have none: ⌊2.5⌋ and ⌊2.7⌋ are different answers.
 */
export function exactValue(expression: Expression): Rational | undefined {
  switch (expression.type) {
    case 'number':
      return parseDecimal(expression.digits);
    case 'binary': {
      const left = exactValue(expression.left);
      const right = left && exactValue(expression.right);
      return left && right && bounded(combine(expression.operator, left, right));
    }
    case 'call':
      return bounded(exactCall(expression.name, expression.arguments.map(exactValue)));
    default:
      return undefined;
  }
}

/** Functions whose value at 0 is 0, and others whose value at 0 is 1. */
const zeroAtZero = new Set(['sin', 'tan', 'arcsin', 'arctan', 'sinh', 'tanh']);
const oneAtZero = new Set(['cos', 'sec', 'cosh', 'exp']);
/** The largest argument of factorials and binomials. */
const MAX_FACTORIAL = 300;

function exactCall(name: string, [first, second]: readonly (Rational | undefined)[]): Rational | undefined {
  if (first === undefined) return undefined;
  const isZero = first.numerator === 0n;
  const isOne = first.numerator === first.denominator;
  if (name === 'abs') return first.numerator < 0n ? { ...first, numerator: -first.numerator } : first;
  if (name === 'factorial') return integer(product(1n, wholeOf(first)));
  if (name === 'binomial') return integer(second && binomial(wholeOf(first), wholeOf(second)));
  if (name === 'root') return isZero || isOne ? first : undefined;
  if (isOne) return name === 'ln' || name === 'log' ? integer(0n) : undefined;
  if (!isZero) return undefined;
  return zeroAtZero.has(name) ? integer(0n) : integer(oneAtZero.has(name) ? 1n : undefined);
}

const integer = (value: bigint | undefined): Rational | undefined =>
  value === undefined ? undefined : { numerator: value, denominator: 1n };

/** A whole number from 0 to MAX_FACTORIAL. */
function wholeOf({ numerator, denominator }: Rational): bigint | undefined {
  if (numerator % denominator !== 0n || numerator < 0n) return undefined;
  const value = numerator / denominator;
  return value <= BigInt(MAX_FACTORIAL) ? value : undefined;
}

function product(from: bigint, to: bigint | undefined): bigint | undefined {
  if (to === undefined) return undefined;
  let value = 1n;
  for (let factor = from; factor <= to; factor++) value *= factor;
  return value;
}

function binomial(n: bigint | undefined, k: bigint | undefined): bigint | undefined {
  if (n === undefined || k === undefined || k > n) return undefined;
  const [above, below] = [product(n - k + 1n, n), product(1n, k)];
  return above !== undefined && below !== undefined ? above / below : undefined;
}

export const equalRationals = (a: Rational, b: Rational): boolean =>
  a.numerator * b.denominator === b.numerator * a.denominator;

function parseDecimal(digits: string): Rational | undefined {
  const [whole = '', fraction = ''] = digits.split('.');
  if (digits.length > 2000) return undefined;
  const sign = whole.startsWith('-') ? -1n : 1n;
  const numerator = BigInt(`${whole.replace('-', '')}${fraction}` || '0');
  return { numerator: sign * numerator, denominator: 10n ** BigInt(fraction.length) };
}

function combine(operator: '+' | '-' | '*' | '/' | '^', a: Rational, b: Rational): Rational | undefined {
  switch (operator) {
    case '+':
    case '-': {
      const right = operator === '+' ? b.numerator : -b.numerator;
      const denominator = a.denominator * b.denominator;
      return { numerator: a.numerator * b.denominator + right * a.denominator, denominator };
    }
    case '*':
      return { numerator: a.numerator * b.numerator, denominator: a.denominator * b.denominator };
    case '/':
      return divide(a, b);
    case '^':
      return power(a, b);
  }
}

function divide(a: Rational, b: Rational): Rational | undefined {
  if (b.numerator === 0n) return undefined;
  const sign = b.numerator < 0n ? -1n : 1n;
  return { numerator: sign * a.numerator * b.denominator, denominator: sign * a.denominator * b.numerator };
}

function power(base: Rational, exponent: Rational): Rational | undefined {
  if (exponent.numerator % exponent.denominator !== 0n) return undefined;
  const n = exponent.numerator / exponent.denominator;
  const size = n < 0n ? -n : n;
  if (size > BigInt(MAX_BITS) || Number(size) * bits(base) > MAX_BITS) return undefined;
  const raised = { numerator: base.numerator ** size, denominator: base.denominator ** size };
  return n < 0n ? divide({ numerator: 1n, denominator: 1n }, raised) : raised;
}

function bounded(value: Rational | undefined): Rational | undefined {
  return value !== undefined && bits(value) <= 2 * MAX_BITS ? value : undefined;
}

const bits = ({ numerator, denominator }: Rational): number =>
  4 * Math.max(numerator.toString(16).length, denominator.toString(16).length);

/** A prime. Two different rational functions agree modulo it at a random point with a chance of about 1 to 2^60. */
const PRIME = (1n << 61n) - 1n;
/** The largest exponent that is multiplied out. */
const MAX_EXPONENT = 1_000_000n;

/**
 * Whether two expressions are equal by algebra: names, roots, other functions and powers with other exponents stand for
 * unknowns. It sees every digit, where floating point does not.
 */
export function sameAlgebra(a: Expression, b: Expression): boolean {
  const value = residue(a, 0);
  return value !== undefined && value === residue(b, 0);
}

/** Whether one expression is a multiple of the other by algebra: their ratio is the same for two sets of unknowns. */
export function proportionalByAlgebra(a: Expression, b: Expression): boolean {
  const [a0, a1, b0, b1] = [residue(a, 0), residue(a, 1), residue(b, 0), residue(b, 1)];
  if (a0 === undefined || a1 === undefined || b0 === undefined || b1 === undefined) return false;
  return a0 !== a1 && a0 !== 0n && b0 !== 0n && modulo(a0 * b1) === modulo(a1 * b0);
}

const modulo = (value: bigint) => ((value % PRIME) + PRIME) % PRIME;

/** The value modulo the prime, with a random number for each unknown; `undefined` if it divides by 0. */
function residue(expression: Expression, set: number): bigint | undefined {
  if (expression.type === 'name') return unknown(`name ${expression.name} ${hasVariables(expression) ? set : 0}`);
  if (expression.type === 'number' || expression.type === 'call') {
    const exact = exactValue(expression);
    if (exact !== undefined) return quotient(modulo(exact.numerator), modulo(exact.denominator));
  }
  const parts = partsOf(expression).map((part) => residue(part, set));
  const [left, right] = parts;
  if (parts.length === 0 || parts.includes(undefined) || left === undefined) return undefined;
  if (expression.type !== 'binary' || right === undefined) {
    return unknown(`${expression.type === 'call' ? expression.name : ''} ${parts.join(' ')}`);
  }
  switch (expression.operator) {
    case '+':
      return modulo(left + right);
    case '-':
      return modulo(left - right);
    case '*':
      return modulo(left * right);
    case '/':
      // An unknown such as ln⌈0.1⌉ may be 0.
      return sizeOf(valueAt(expression.right, { point: 0 })) === 0 ? undefined : quotient(left, right);
    case '^':
      return left === 1n ? 1n : raised(left, right, exactValue(expression.right));
  }
}

function raised(base: bigint, exponent: bigint, exact: Rational | undefined): bigint | undefined {
  const n = exact && exact.numerator % exact.denominator === 0n ? exact.numerator / exact.denominator : undefined;
  if (n === undefined || n > MAX_EXPONENT || n < -MAX_EXPONENT) return unknown(`^ ${base} ${exponent}`);
  return n < 0n ? quotient(1n, multiplied(base, -n)) : multiplied(base, n);
}

function multiplied(base: bigint, times: bigint): bigint {
  let value = 1n;
  for (let square = base, left = times; left > 0n; left >>= 1n, square = modulo(square * square)) {
    if (left & 1n) value = modulo(value * square);
  }
  return value;
}

/** A quotient modulo the prime, by Fermat's little theorem. */
const quotient = (a: bigint, b: bigint): bigint | undefined =>
  b === 0n ? undefined : modulo(a * multiplied(b, PRIME - 2n));

function unknown(name: string): bigint {
  const key = randomKey('grading', name);
  return modulo([0, 1, 2].reduce((bits, n) => (bits << 24n) | BigInt(uniformAt(key, n) * 2 ** 24), 0n));
}
