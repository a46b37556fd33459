/** Python's two ways to write values into a text: `'%s' % value` and `'{}'.format(value)`. */
import type { Budget } from './budget.js';
import { floatText } from './python-text.js';
import {
  exactFloat,
  isList,
  isMap,
  isNumber,
  type Named,
  repr,
  Sequence,
  Tuple,
  textLength,
  textOf,
  typeName,
  type Value,
} from './values.js';

interface Spec {
  readonly fill: string;
  readonly align: string;
  readonly sign: string;
  readonly alternate: boolean;
  readonly width: number;
  readonly group: string;
  readonly precision: number | undefined;
  readonly type: string;
}

const SPEC = /^(?:([\s\S])?([<>=^]))?([-+ ]?)(#?)(0?)(\d*)([,_]?)(?:\.(\d+))?([a-zA-Z%]?)$/u;
const MOST_DIGITS = 100;

/** Python's `format(value, spec)`. */
function formatValue(value: Value, spec: string, budget: Budget): string {
  if (spec === '') return textOf(value, budget);
  const found = SPEC.exec(spec);
  if (found === null) throw new Error(`invalid format '${spec}'`);
  const [, fill, align = '', sign = '', alternate = '', zero = '', width = '', group = '', precision, type = ''] =
    found;
  const isText = typeof value === 'string';
  if (isText && (sign + alternate + group !== '' || align === '='))
    throw new Error(`the format '${spec}' of numbers does not fit a text`);
  return write(
    value,
    {
      fill: fill ?? (zero === '' ? ' ' : '0'),
      align: align || (zero === '' || isText ? '' : '='),
      sign,
      alternate: alternate !== '',
      width: Number(width),
      group,
      precision: precision === undefined ? undefined : Number(precision),
      type,
    },
    budget,
  );
}

function write(value: Value, spec: Spec, budget: Budget): string {
  budget.length(spec.width);
  if (typeof value === 'string') {
    if (!'s'.includes(spec.type)) throw new Error(`unknown format code '${spec.type}' for a text`);
    const text = spec.precision === undefined ? value : Array.from(value).slice(0, spec.precision).join('');
    return padded('', text, { ...spec, align: spec.align || '<' });
  }
  if (!isNumber(value)) throw new Error(`unsupported format for a value of type ${typeName(value)}`);
  if ((spec.precision ?? 0) > MOST_DIGITS) throw new Error(`expected at most ${MOST_DIGITS} digits`);
  if (spec.group !== '' && !(spec.group === '_' ? GROUPED_BY_LINE : GROUPED_BY_COMMA).includes(spec.type))
    throw new Error(`'${spec.group}' and '${spec.type}' do not fit in a format`);
  const number = typeof value === 'boolean' ? BigInt(value) : value;
  const isNegative = number < 0 || Object.is(number, -0);
  const sign = isNegative ? '-' : spec.sign === '-' ? '' : spec.sign;
  const size = typeof number === 'bigint' ? (number < 0n ? -number : number) : Math.abs(number);
  const text = typeof size === 'bigint' && 'dnxXobc'.includes(spec.type) ? whole(size, sign, spec) : real(size, spec);
  const prefix = typeof size === 'bigint' && spec.alternate ? (PREFIXES[spec.type] ?? '') : '';
  return padded(sign + prefix, spec.group === '' ? text : grouped(text, prefix.length + sign.length, spec), {
    ...spec,
    align: spec.align || '>',
  });
}

const GROUPED_BY_COMMA = 'defgEFG%';
const GROUPED_BY_LINE = `${GROUPED_BY_COMMA}xXob`;
const PREFIXES: Readonly<Record<string, string>> = { x: '0x', X: '0X', o: '0o', b: '0b' };
const BASES: Readonly<Record<string, number>> = { x: 16, X: 16, o: 8, b: 2 };
const LARGEST_CODE_POINT = 0x10ffff;

function whole(size: bigint, sign: string, { type, precision, alternate, sign: asked }: Spec): string {
  if (precision !== undefined) throw new Error('no precision is allowed for a whole number');
  if (type === 'c') {
    if (asked !== '' || alternate) throw new Error("no sign and no '#' are allowed for a character");
    if (sign === '-' || size > LARGEST_CODE_POINT) throw new Error('the number is no character');
    return String.fromCodePoint(Number(size));
  }
  const text = size.toString(BASES[type] ?? 10);
  return type === 'X' ? text.toUpperCase() : text;
}

/** A number as a float. */
function real(size: bigint | number, { type, precision, alternate }: Spec): string {
  const float = exactFloat(size);
  const text = (): string => {
    if (!'eEfFgGn%'.includes(type)) throw new Error(`unknown format code '${type}' for a number`);
    if (!Number.isFinite(float)) return floatText(float) + (type === '%' ? '%' : '');
    switch (type.toLowerCase()) {
      case 'f':
        return fixed(float, precision ?? 6, alternate);
      case '%':
        return `${fixed(float * 100, precision ?? 6, alternate)}%`;
      case 'e':
        return exponential(float, precision ?? 6, alternate);
      case '':
        return precision === undefined ? shortest(float, alternate) : general(float, precision, alternate, 1);
      default:
        return general(float, precision ?? 6, alternate);
    }
  };
  return type === type.toLowerCase() ? text() : text().toUpperCase();
}

const withPoint = (text: string) => (text.includes('.') ? text : text.replace(/(?=e|$)/, '.'));
const shortest = (value: number, alternate: boolean) => (alternate ? withPoint(floatText(value)) : floatText(value));

/** The most digits that JavaScript writes. */
const MOST_WRITTEN = 100;

/** A number as a function of JavaScript writes it, but a tie goes to the even digit as in Python. */
function tiesToEven(write: (digits: number) => string, digits: number): string {
  const [, kept = '', next = '', rest = '', power = ''] = exactly(write, digits);
  const isTie = next === '5' && /^0*$/.test(rest) && /[02468]\.?$/.test(kept);
  return isTie ? kept.replace(/\.$/, '') + power : write(digits);
}

/** The text up to the digit that is rounded, this digit, the digits behind it, and the power of ten. */
const exactly = (write: (digits: number) => string, digits: number): readonly string[] =>
  digits >= MOST_WRITTEN
    ? []
    : (new RegExp(`^(-?\\d+\\.\\d{${digits}})(\\d)(\\d*)(e.*)?$`).exec(write(MOST_WRITTEN)) ?? []);

/** `toFixed` of a number below 1e21, rounded as Python rounds. */
export const fixedText = (value: number, digits: number): string =>
  Math.abs(value) < 1e21 ? tiesToEven((most) => value.toFixed(most), digits) : value.toFixed(digits);

const exponentialText = (value: number, digits: number): string =>
  tiesToEven((most) => value.toExponential(most), digits);

function fixed(value: number, digits: number, alternate: boolean): string {
  const text = value < 1e21 ? fixedText(value, digits) : large(value, digits);
  return alternate ? withPoint(text) : text;
}

function large(value: number, digits: number): string {
  if (!Number.isFinite(value)) return floatText(value);
  return BigInt(value).toString() + (digits > 0 ? `.${'0'.repeat(digits)}` : '');
}

function exponential(value: number, digits: number, alternate: boolean): string {
  const [mantissa = '', power = '0'] = exponentialText(value, digits).split('e');
  const exponent = Number(power);
  const sign = exponent < 0 ? '-' : '+';
  return `${alternate ? withPoint(mantissa) : mantissa}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

function general(value: number, asked: number, keepZeros: boolean, less = 0): string {
  const precision = Math.max(1, asked);
  const exponent = Number(exponentialText(value, precision - 1).split('e')[1]);
  const isFixed = exponent >= -4 && exponent < precision - less;
  const text = isFixed ? fixedText(value, precision - 1 - exponent) : exponential(value, precision - 1, false);
  if (keepZeros) return withPoint(text);
  const [mantissa = '', power] = text.split('e');
  const short = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
  const whole = less > 0 && isFixed && !short.includes('.') ? `${short}.0` : short;
  return power === undefined ? whole : `${short}e${power}`;
}

/** The digits before the point in groups. Zeros that fill the width are grouped as well. */
function grouped(text: string, before: number, { group, type, align, fill, width }: Spec): string {
  const isBased = type !== '' && 'xXob'.includes(type);
  const end = isBased ? -1 : text.search(/\D/);
  const digits = end < 0 ? text : text.slice(0, end);
  const rest = text.slice(digits.length);
  if (digits === '') return text;
  const size = isBased ? 4 : 3;
  const isFilled = align === '=' && fill === '0';
  const groups: string[] = [];
  let [left, missing] = [digits, isFilled ? width - before - rest.length : 0];
  while (groups.length === 0 || left !== '' || missing > 0) {
    if (groups.length > 0) missing--; // the mark between two groups
    const length = Math.min(size, Math.max(left.length, missing, 1));
    groups.unshift(left.slice(-length).padStart(length, '0'));
    left = left.slice(0, -length);
    missing -= length;
  }
  return groups.join(group) + rest;
}

/** @param head Signs, which stand before zeros that fill the width. */
function padded(head: string, text: string, { align, fill, width }: Spec): string {
  const missing = Math.max(0, width - textLength(head + text));
  if (align === '=') return head + fill.repeat(missing) + text;
  const left = align === '<' ? 0 : align === '^' ? Math.floor(missing / 2) : missing;
  return fill.repeat(left) + head + text + fill.repeat(missing - left);
}

const PERCENT = /%(?:\(([^()]*)\))?([-+ #0]*)(\*|\d*)(?:\.(\d*))?[hlL]?([\s\S]?)/g;

/** `'%s' % value`. */
export function percent(format: string, value: Value, budget: Budget): string {
  const values = value instanceof Tuple ? value.items : [value];
  let used = 0;
  const next = (): Value => {
    if (used >= values.length) throw new Error('not enough values for the format');
    return values[used++];
  };
  const text = format.replace(PERCENT, (_all, key, flags: string, width: string, precision, type: string) => {
    if (type === '') throw new Error('incomplete format');
    if (type === '%') return '%';
    if (width === '*') throw new Error('the width * is not supported in a format');
    if (key !== undefined && !isMap(value)) throw new Error('the format requires a mapping');
    if (key !== undefined && isMap(value) && !value.has(key)) throw new Error(`the format has no value for '${key}'`);
    const each = key !== undefined && isMap(value) ? value.get(key) : next();
    return budget.text(percentValue(each, type, flags, Number(width), precision, budget));
  });
  if (used < values.length && !isSubscripted(value)) throw new Error('not all values were used by the format');
  return budget.text(text);
}

/** Whether Python takes a value for a mapping, which may stay unused. */
const isSubscripted = (value: Value) =>
  value === undefined || isMap(value) || isList(value) || (value instanceof Sequence && value.kind === 'range');

function percentValue(
  value: Value,
  type: string,
  flags: string,
  width: number,
  precision: string | undefined,
  budget: Budget,
): string {
  const isLeft = flags.includes('-');
  budget.length(Math.max(width, Number(precision ?? 0)));
  const spec: Spec = {
    fill: flags.includes('0') && !isLeft ? '0' : ' ',
    align: isLeft ? '<' : flags.includes('0') ? '=' : '>',
    sign: flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '',
    alternate: flags.includes('#'),
    width,
    group: '',
    precision: precision === undefined ? undefined : Number(precision),
    type,
  };
  if (type === 's' || type === 'r' || type === 'a') {
    const shown = type === 's' ? textOf(value, budget) : repr(value, budget);
    const text = type === 'a' ? inAscii(shown) : shown;
    return write(text, { ...spec, type: 's', fill: ' ', align: isLeft ? '<' : '>' }, budget);
  }
  if (type === 'c' && typeof value === 'string') {
    if (textLength(value) !== 1) throw new Error('%c format: expected one character');
    return write(value, { ...spec, type: 's', precision: undefined }, budget);
  }
  if (!isNumber(value)) throw new Error(`%${type} format: a number is required, not ${typeName(value)}`);
  if ('eEfFgG'.includes(type)) return write(exactFloat(value), spec, budget);
  if (!'diuxXoc'.includes(type)) throw new Error(`unsupported format character '${type}'`);
  if (typeof value === 'number' && !('diu'.includes(type) && Number.isFinite(value)))
    throw new Error(`%${type} format: an integer is required`);
  const integer = typeof value === 'number' ? BigInt(Math.trunc(value)) : BigInt(value);
  if (type === 'c') return write(integer, { ...spec, type, sign: '', alternate: false, precision: undefined }, budget);
  const digits = (integer < 0n ? -integer : integer).toString(BASES[type] ?? 10).padStart(spec.precision ?? 0, '0');
  const sign = integer < 0n ? '-' : spec.sign;
  const prefix = spec.alternate ? (PREFIXES[type] ?? '') : '';
  return padded(sign + prefix, type === 'X' ? digits.toUpperCase() : digits, spec);
}

/** Python's `ascii()`: other characters as `\\xe9`, `\\u20ac` and `\\U0001f600`. */
const inAscii = (text: string) =>
  text.replace(/[^\0-\x7f]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const [letter, digits] = code < 0x100 ? ['x', 2] : code < 0x10000 ? ['u', 4] : ['U', 8];
    return `\\${letter}${code.toString(16).padStart(digits as number, '0')}`;
  });

/** A value as a field of `format` with `!s`, `!r` or `!a` writes it. */
function converted(value: Value, conversion: string | undefined, budget: Budget): Value {
  if (conversion === undefined) return value;
  if (conversion === 's') return textOf(value, budget);
  return conversion === 'a' ? inAscii(repr(value, budget)) : repr(value, budget);
}

/** How a field of `format` reaches into a value: `{0.name}`, `{a[b]}`. */
type Reach = (value: Value, name: string, isAttribute: boolean) => Value;

/** `text.format(...)`. */
export function formatText(format: string, args: readonly Value[], named: Named, reach: Reach, budget: Budget): string {
  let automatic = 0;
  const ways = new Set<'counted' | 'numbered'>();
  const field = (text: string): Value => {
    const [, first = '', path = ''] = /^([^.[]*)([\s\S]*)$/.exec(text) ?? [];
    const index = first === '' ? automatic++ : Number(first);
    const isIndex = Number.isInteger(index);
    if (isIndex) {
      const way = first === '' ? 'counted' : 'numbered';
      if (ways.add(way).size > 1) throw new Error('format() got fields with numbers and fields without');
    }
    if (isIndex ? index >= args.length : !named.has(first)) throw new Error(`format() got no value for '{${text}}'`);
    let value = isIndex ? args[index] : named.get(first);
    for (const [, attribute, item = ''] of path.matchAll(/\.([^.[]+)|\[([^\]]+)\]/g))
      value = reach(value, attribute ?? item, attribute !== undefined);
    return value;
  };
  const nested = (spec: string) => spec.replace(/\{([^{}]*)\}/g, (_all, name: string) => textOf(field(name), budget));
  const text = format.replace(
    /\{\{|\}\}|\{([^{}:!]*)(?:!([rsa]))?(?::((?:[^{}]|\{[^{}]*\})*))?\}|[{}]/g,
    (all, name?: string, conversion?: string, spec = '') => {
      if (all === '{{' || all === '}}') return all.charAt(0);
      if (name === undefined) throw new Error(`single '${all}' in a format`);
      const value = field(name);
      return budget.text(formatValue(converted(value, conversion, budget), nested(spec), budget));
    },
  );
  return budget.text(text);
}
