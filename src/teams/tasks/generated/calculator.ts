import { parseExpression } from '../grading/expression.js';
import { exactValue } from '../grading/rational.js';

/** The longest expression in characters, enough for whatever a person would type. */
const LONGEST = 200;
/** The most digits of a result, and of its decimals. */
const MOST_DIGITS = 50;
const MOST_DECIMALS = 10;

/**
 * Computes the exact value of an expression of numbers, brackets and + - * / ^ as text: `12*(3+4)` is `84`, `7/2` is
 * `3.5`; a value with more than ten decimals stays a reduced fraction such as `1/3`. Returns `undefined` for anything
 * else: names, divisions by zero, numbers of more than fifty digits. Time and memory are bounded for every text.
 *
 * @example
 * ```ts
 * import { calculate } from 'drmas/tasks';
 *
 * calculate('12*(3+4)'); // '84'
 * ```
 */
export function calculate(text: string): string | undefined {
  if (text.length > LONGEST) return undefined;
  const expression = parseExpression(asLatex(text));
  const value = expression && exactValue(expression);
  if (value === undefined) return undefined;
  const { numerator, denominator } = value;
  const divisor = greatestCommonDivisor(numerator < 0n ? -numerator : numerator, denominator);
  const written = decimalText(numerator / divisor, denominator / divisor);
  return written.length <= MOST_DIGITS ? written : undefined;
}

/** The expression in LaTeX, with braces around exponents, since LaTeX raises to one digit only without them. */
const asLatex = (text: string): string =>
  text
    .replaceAll('×', '*')
    .replaceAll('÷', '/')
    .replace(/\^\s*(\d+)/g, '^{$1}');

function decimalText(numerator: bigint, denominator: bigint): string {
  const scale = 10n ** BigInt(MOST_DECIMALS);
  if ((numerator * scale) % denominator !== 0n) return `${numerator}/${denominator}`;
  const scaled = (numerator * scale) / denominator;
  const digits = String(scaled < 0n ? -scaled : scaled).padStart(MOST_DECIMALS + 1, '0');
  const fraction = digits.slice(-MOST_DECIMALS).replace(/0+$/, '');
  return `${scaled < 0n ? '-' : ''}${digits.slice(0, -MOST_DECIMALS)}${fraction === '' ? '' : `.${fraction}`}`;
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}
