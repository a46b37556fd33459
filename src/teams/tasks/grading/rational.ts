import type { Expression } from './expression.js';

/** A fraction, not reduced; the denominator is positive. */
export interface Rational {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/**
 * The size of the largest exact number in bits; larger ones are left to floating point, so that no expression is slow.
 */
const MAX_BITS = 20_000;

/** The exact value of an expression of numbers and + - * / ^, or `undefined` for any other. Bases are ignored. */
export function exactValue(expression: Expression): Rational | undefined {
  switch (expression.type) {
    case 'number':
      return parseDecimal(expression.digits);
    case 'binary': {
      const left = exactValue(expression.left);
      const right = left && exactValue(expression.right);
      return left && right && bounded(combine(expression.operator, left, right));
    }
    default:
      return undefined;
  }
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
