/** The filters of jinja2, and `tojson` as transformers defines it. */
import { Arguments } from './arguments.js';
import type { Budget } from './budget.js';
import { fixedText, percent } from './format-text.js';
import { jsonStyle, writeJson } from './json.js';
import { replaced } from './methods.js';
import { calculate } from './operators.js';
import { asciiDigits, capitalize, splitLines, strip, titleWords } from './python-text.js';
import { fileSize, urlQuoted, withoutTags, wordWrapped } from './text-filters.js';
import {
  Callable,
  compare,
  equals,
  escaped,
  exactFloat,
  isMap,
  isNumber,
  itemsOf,
  iterate,
  lengthOf,
  Markup,
  type Named,
  plain,
  points,
  Sequence,
  Tuple,
  textOf,
  truthy,
  typeName,
  type Value,
} from './values.js';

export interface Host {
  readonly budget: Budget;
  /** `value[name]`, then `value.name`. */
  readonly item: (value: Value, key: Value) => Value;
  /** `value.name`, then `value[name]`. */
  readonly attribute: (value: Value, name: string) => Value;
  readonly filter: (name: string, value: Value, args: readonly Value[], named: Named) => Value;
  readonly test: (name: string, value: Value, args: readonly Value[], named: Named) => boolean;
}

interface Call {
  readonly args: Arguments;
  readonly host: Host;
  readonly budget: Budget;
}

/** A filter: the names of its parameters after the value, and what it returns. */
export type Filter = readonly [parameters: readonly string[], run: (value: Value, call: Call) => Value];

const lower = (value: Value): Value => (typeof value === 'string' ? value.toLowerCase() : value);
const list = (value: Value, { budget }: Call) => iterate(value, budget);
const text = (value: Value, { budget }: Call) => budget.text(textOf(value, budget));

/** `value` reached by `a.b.0`; a number is an index. A default stands for each part that is undefined; None is none. */
function reach(value: Value, path: Value, host: Host, otherwise?: Value): Value {
  if (path === null) return value;
  const names = typeof path === 'string' ? path.split('.') : [path];
  let reached = value;
  for (const name of names) {
    reached = host.item(reached, typeof name === 'string' && /^\d+$/.test(name) ? BigInt(name) : name);
    if (reached === undefined) reached = otherwise ?? undefined;
  }
  return reached;
}

/** How a filter compares entries: by an attribute, and without regard to capitals. */
function keyFor({ args, host }: Call): (value: Value) => Value {
  const attribute = args.has('attribute') ? args.get('attribute') : null;
  const isSensitive = truthy(args.get('case_sensitive'));
  return (value) => {
    const reached = reach(value, attribute, host, args.get('default'));
    return isSensitive ? reached : lower(reached);
  };
}

/** The keys by which `sort` compares: its attributes are separated by commas. */
function keysFor({ args, host }: Call): (value: Value) => Value[] {
  const attribute = args.get('attribute') ?? null;
  const paths = typeof attribute === 'string' ? attribute.split(',') : [attribute];
  const isSensitive = truthy(args.get('case_sensitive'));
  return (value) => paths.map((path) => (isSensitive ? reach(value, path, host) : lower(reach(value, path, host))));
}

function sorted(items: readonly Value[], key: (value: Value) => Value, isReverse: boolean, budget: Budget): Value[] {
  const sign = isReverse ? -1 : 1;
  return items
    .map((value) => [key(value), value] as const)
    .sort(([a], [b]) => sign * compare(a, b, budget))
    .map(([, value]) => value);
}

const extreme = (sign: number): Filter => [
  ['case_sensitive', 'attribute'],
  (value, call) => {
    const key = keyFor(call);
    let best: Value;
    for (const [i, item] of list(value, call).entries())
      if (i === 0 || sign * compare(key(item), key(best), call.budget) > 0) best = item;
    return best;
  },
];

/** `select`, `reject`, and the same by an attribute. */
const chosen = (isKept: boolean, byAttribute: boolean): Filter => [
  [],
  (value, { args, host, budget }) => {
    const [first, ...rest] = args.rest;
    const [name, ...more] = byAttribute ? rest : args.rest;
    if (byAttribute && first === undefined) throw new Error('an attribute is missing');
    const items = iterate(truthy(value) ? value : [], budget).filter((item) => {
      const subject = byAttribute ? reach(item, first, host) : item;
      const passes = name === undefined ? truthy(subject) : host.test(String(name), subject, more, args.restNamed);
      return passes === isKept;
    });
    return new Sequence('generator', items);
  },
];

const chunks = (items: readonly Value[], size: number): Value[][] => {
  const result: Value[][] = [];
  for (let i = 0; i < items.length; i += size) result.push(items.slice(i, i + size));
  return result;
};

/** Digits beyond which Python leaves a float as it is, and before which nothing of one is left. */
const [MOST_DIGITS, LEAST_DIGITS] = [323, -308];

/** Python's `round` of a float. */
function rounded(value: number, digits: number): number {
  if (!Number.isFinite(value) || digits > MOST_DIGITS) return value;
  if (digits < LEAST_DIGITS) return 0 * value;
  if (digits > 100) throw new Error('round: expected at most 100 digits');
  if (digits > 0) return Object.is(value, -0) ? value : Number(fixedText(value, digits));
  if (digits === 0) return halfToEven(value);
  // Tens of a number with a fraction: a half and a bit more than a half must differ.
  const size = Math.abs(value);
  const tens = wholeRounded(BigInt(Math.trunc(size)) * 2n + (Number.isInteger(size) ? 0n : 1n), digits, 2n);
  const result = Number(tens / 2n);
  if (!Number.isFinite(result)) throw new Error('round: the result is too large');
  return value < 0 || Object.is(value, -0) ? -result : result;
}

/** jinja2's `round` with the methods `ceil` and `floor`. */
function roundedOutward(value: bigint | number, digits: number, method: 'ceil' | 'floor', budget: Budget): number {
  const whole = (scaled: number): bigint => {
    if (!Number.isFinite(scaled)) throw new Error('round: the number is too large');
    return BigInt(Math[method](scaled));
  };
  if (digits < 0)
    return Number(calculate('/', whole(exactFloat(value) * Number(`1e${digits}`)), Number(`1e${digits}`), budget));
  const unit = calculate('**', 10n, BigInt(digits), budget);
  const scaled = calculate('*', value, unit, budget);
  return Number(calculate('/', typeof scaled === 'bigint' ? scaled : whole(Number(scaled)), unit, budget));
}

/** A whole number of halves, thirds ... of `unit`, rounded to tens if `digits` is -1. */
function wholeRounded(value: bigint, digits: number, parts = 1n): bigint {
  if (digits >= 0) return value;
  if (digits < -4300) return 0n;
  const unit = parts * 10n ** BigInt(-digits);
  const rest = ((value % unit) + unit) % unit;
  const floor = value - rest;
  const isUp = 2n * rest > unit || (2n * rest === unit && (floor / unit) % 2n !== 0n);
  return isUp ? floor + unit : floor;
}

function halfToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
}

/** Digits of Python's whole numbers, with single lines between them. */
const DIGITS = /^([-+]?)(0[xobXOB]_?)?([\da-zA-Z]+(?:_[\da-zA-Z]+)*)$/;
const BASES: Readonly<Record<string, number>> = { x: 16, o: 8, b: 2 };
const MOST_DECIMALS = 4300;

/** Python's `int(text, base)`; undefined if it is no number. */
function parsedInteger(value: string, base: number): bigint | undefined {
  const trimmed = asciiDigits(strip(value, 'both'));
  const [, sign, prefix = '', behind = ''] = DIGITS.exec(trimmed) ?? [];
  if (sign === undefined || base < 0 || base === 1 || base > 36) return undefined;
  const named = BASES[prefix.charAt(1).toLowerCase()];
  const hasPrefix = named !== undefined && (base === 0 || base === named);
  const digits = ((hasPrefix ? '' : prefix) + behind).replaceAll('_', '');
  const radix = base === 0 ? (named ?? 10) : base;
  if (digits.length > MOST_DECIMALS || (base === 0 && named === undefined && /^0+[1-9]/.test(digits))) return undefined;
  const numbers = Array.from(digits, (digit) => Number.parseInt(digit, 36));
  if (!numbers.every((number) => number < radix)) return undefined;
  const size = numbers.reduce((sum, number) => sum * BigInt(radix) + BigInt(number), 0n);
  return sign === '-' ? -size : size;
}

/** Python's `float(text)`; undefined if it is no number. */
function parsedFloat(value: string): number | undefined {
  const trimmed = asciiDigits(strip(value, 'both')).replace(/(?<=\d)_(?=\d)/g, '');
  if (/^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(trimmed)) return Number(trimmed);
  const [, sign, word] = /^([-+]?)(inf(?:inity)?|nan)$/i.exec(trimmed) ?? [];
  if (word === undefined) return undefined;
  return word.toLowerCase() === 'nan' ? Number.NaN : sign === '-' ? -Infinity : Infinity;
}

function indented(value: string, { args, budget }: Call): string {
  const width = args.get('width');
  const space = typeof width === 'string' ? width : ' '.repeat(bounded(args.integer('width', 4), budget));
  const lines = splitLines(`${value}\n`, false);
  budget.length(value.length + lines.length * space.length);
  const isBlank = truthy(args.get('blank'));
  const body = lines.map((line, i) => (i === 0 ? line : line !== '' || isBlank ? space + line : line));
  return (truthy(args.get('first')) ? space : '') + body.join('\n');
}

function bounded(characters: number, budget: Budget): number {
  budget.length(Math.max(0, characters));
  return Math.max(0, characters);
}

function truncated(value: Value, { args }: Call): Value {
  const length = args.integer('length', 255);
  const end = args.text('end', '...');
  const isText = typeof value === 'string';
  const characters = isText ? points(value) : [];
  const size = isText ? characters.length : Number(lengthOf(value));
  const [least, leeway] = [points(end).length, args.get('leeway') === null ? 5 : args.integer('leeway', 5)];
  if (length < least) throw new Error(`truncate: expected a length of at least ${least}, got ${length}`);
  if (leeway < 0) throw new Error(`truncate: expected a leeway of at least 0, got ${leeway}`);
  if (size <= length + leeway) return value;
  if (!isText) throw new Error(`truncate: expected a text, got ${typeName(value)}`);
  const kept = characters.slice(0, length - least).join('');
  if (truthy(args.get('killwords'))) return kept + end;
  const space = kept.lastIndexOf(' ');
  return (space < 0 ? kept : kept.slice(0, space)) + end;
}

const standsFor: Filter = [
  ['default_value', 'boolean'],
  (value, { args }) => {
    const isMissing = value === undefined || (truthy(args.get('boolean')) && !truthy(value));
    if (!isMissing) return value;
    return args.has('default_value') ? args.get('default_value') : '';
  },
];
const length: Filter = [[], (value) => lengthOf(value)];
const escapes: Filter = [[], (value, call) => new Markup(call.budget.text(escaped(text(value, call))))];

export const filters: Readonly<Record<string, Filter>> = {
  abs: [
    [],
    (value) => {
      if (!isNumber(value)) throw new Error(`bad operand type for abs(): '${typeName(value)}'`);
      const number = typeof value === 'boolean' ? BigInt(value) : value;
      return number < 0 || Object.is(number, -0) ? -number : number;
    },
  ],
  attr: [
    ['name'],
    (value, { args, host }) => {
      const found = host.attribute(value, args.text('name'));
      return isMap(value) && !(found instanceof Callable) ? undefined : found; // the method, never an entry
    },
  ],
  batch: [
    ['linecount', 'fill_with'],
    (value, call) => {
      const size = call.args.integer('linecount');
      if (size < 1) throw new Error('batch: expected at least 1');
      const fill = call.args.get('fill_with');
      const rows = chunks(list(value, call), size);
      const last = rows.at(-1);
      if (last !== undefined && fill !== undefined && fill !== null && last.length < size) {
        call.budget.entries(size);
        last.push(...Array.from({ length: size - last.length }, () => fill));
      }
      return new Sequence('generator', rows);
    },
  ],
  capitalize: [[], (value, call) => capitalize(text(value, call))],
  center: [
    ['width'],
    (value, call) => {
      const self = text(value, call);
      const width = call.args.integer('width', 80);
      const missing = bounded(width - points(self).length, call.budget);
      const before = Math.floor(missing / 2) + (missing & width & 1);
      return ' '.repeat(before) + self + ' '.repeat(missing - before);
    },
  ],
  count: length,
  d: standsFor,
  default: standsFor,
  dictsort: [
    ['case_sensitive', 'by', 'reverse'],
    (value, { args, budget }) => {
      if (!isMap(value)) throw new Error(`dictsort: expected a dict, got ${typeName(value)}`);
      const by = ['key', 'value'].indexOf(args.text('by', 'key'));
      if (by < 0) throw new Error("dictsort: expected 'key' or 'value' as by");
      const isSensitive = truthy(args.get('case_sensitive'));
      const key = (item: Value) => {
        const each = item instanceof Tuple ? item.items[by] : undefined;
        return isSensitive ? each : lower(each);
      };
      return sorted(
        [...value].map((entry) => new Tuple(entry)),
        key,
        args.flag('reverse'),
        budget,
      );
    },
  ],
  e: escapes,
  escape: escapes,
  filesizeformat: [
    ['binary'],
    (value, { args }) => {
      const bytes = isNumber(value) ? Number(value) : typeof value === 'string' ? parsedFloat(value) : undefined;
      if (bytes === undefined) throw new Error(`filesizeformat: expected a number, got ${typeName(value)}`);
      return fileSize(bytes, truthy(args.get('binary')));
    },
  ],
  first: [[], (value, call) => list(value, call)[0]],
  float: [
    ['default'],
    (value, { args }) => {
      const otherwise = args.has('default') ? args.get('default') : 0;
      if (value === undefined) throw new Error('float: the value is undefined');
      if (isNumber(value)) return exactFloat(value);
      return (typeof value === 'string' ? parsedFloat(value) : undefined) ?? otherwise;
    },
  ],
  forceescape: escapes,
  format: [
    [],
    (value, call) => {
      const { rest, restNamed } = call.args;
      if (rest.length > 0 && restNamed.size > 0) throw new Error('format: values by place or by name, not both');
      const values = restNamed.size > 0 ? new Map<Value, Value>(restNamed) : new Tuple(rest);
      return percent(text(value, call), values, call.budget);
    },
  ],
  groupby: [
    ['attribute', 'default', 'case_sensitive'],
    (value, call) => {
      if (!call.args.has('attribute')) throw new Error('groupby: an attribute is missing');
      const key = keyFor(call);
      const [attribute, otherwise] = [call.args.get('attribute'), call.args.get('default')];
      const groups: [Value, Value, Value[]][] = [];
      for (const item of sorted(list(value, call), key, false, call.budget)) {
        const last = groups.at(-1);
        const own = key(item);
        if (last !== undefined && equals(last[0], own, call.budget)) last[2].push(item);
        else groups.push([own, reach(item, attribute, call.host, otherwise), [item]]);
      }
      return groups.map(([, shown, items]) => new Group(shown, items));
    },
  ],
  indent: [
    ['width', 'first', 'blank'],
    (value, call) => {
      if (typeof value !== 'string') throw new Error(`indent: expected a text, got ${typeName(value)}`);
      return indented(value, call);
    },
  ],
  int: [
    ['default', 'base'],
    (value, { args }) => {
      const otherwise = args.has('default') ? args.get('default') : 0n;
      if (value === undefined) throw new Error('int: the value is undefined');
      if (Math.abs(Number(value)) === Infinity && typeof value === 'number')
        throw new Error('int: the number is infinite');
      if (typeof value === 'number') return Number.isNaN(value) ? otherwise : BigInt(Math.trunc(value));
      if (isNumber(value)) return BigInt(value);
      if (typeof value !== 'string') return otherwise;
      const float = parsedFloat(value);
      const whole = parsedInteger(value, args.integer('base', 10));
      return whole ?? (float !== undefined && Number.isFinite(float) ? BigInt(Math.trunc(float)) : otherwise);
    },
  ],
  items: [
    [],
    (value, { budget }) => {
      if (value === undefined) return new Sequence('generator', []);
      if (!isMap(value)) throw new Error(`items: expected a mapping, got ${typeName(value)}`);
      budget.entries(value.size);
      return new Sequence(
        'generator',
        [...value].map((entry) => new Tuple(entry)),
      );
    },
  ],
  join: [
    ['d', 'attribute'],
    (value, call) => {
      const texts = list(value, call).map((item) =>
        text(reach(item, call.args.get('attribute') ?? null, call.host), call),
      );
      const separator = call.args.has('d') ? text(call.args.get('d'), call) : '';
      call.budget.length(texts.reduce((sum, each) => sum + each.length + separator.length, 0));
      return texts.join(separator);
    },
  ],
  last: [
    [],
    (value, call) => {
      if (value instanceof Sequence && value.kind === 'generator')
        throw new Error("'generator' object is not reversible");
      return list(value, call).at(-1);
    },
  ],
  length,
  list: [[], (value, call) => [...list(value, call)]],
  lower: [[], (value, call) => text(value, call).toLowerCase()],
  map: [
    [],
    (value, { args, host, budget }) => {
      const [name, ...more] = args.rest;
      const named = args.restNamed;
      if (args.rest.length === 0 && !named.has('attribute')) throw new Error('map: a filter is missing');
      const odd = [...named.keys()].find((each) => each !== 'attribute' && each !== 'default');
      if (args.rest.length === 0 && odd !== undefined) throw new Error(`map: got an unexpected value for '${odd}'`);
      const items = iterate(truthy(value) ? value : [], budget).map((item) => {
        if (args.rest.length === 0) return reach(item, named.get('attribute'), host, named.get('default'));
        return host.filter(String(name), item, more, named);
      });
      return new Sequence('generator', items);
    },
  ],
  max: extreme(1),
  min: extreme(-1),
  reject: chosen(false, false),
  rejectattr: chosen(false, true),
  replace: [
    ['old', 'new', 'count'],
    (value, call) => {
      if (!call.args.has('old') || !call.args.has('new')) throw new Error('replace: expected two texts');
      const [old, by] = [text(call.args.get('old'), call), text(call.args.get('new'), call)];
      const count = call.args.get('count') === null ? -1 : call.args.integer('count', -1);
      return replaced(text(value, call), old, by, count, call.budget);
    },
  ],
  reverse: [
    [],
    (value, call) => {
      if (typeof value === 'string') return points(call.budget.text(value)).toReversed().join('');
      return new Sequence('generator', list(value, call).toReversed());
    },
  ],
  round: [
    ['precision', 'method'],
    (value, { args, budget }) => {
      const method = args.text('method', 'common');
      if (!['common', 'ceil', 'floor'].includes(method)) throw new Error('method must be common, ceil or floor');
      if (!isNumber(value)) throw new Error(`round: expected a number, got ${typeName(value)}`);
      const digits = args.integer('precision', 0);
      const number = typeof value === 'boolean' ? BigInt(value) : value;
      if (method !== 'common') return roundedOutward(number, digits, method === 'ceil' ? 'ceil' : 'floor', budget);
      return typeof number === 'bigint' ? wholeRounded(number, digits) : rounded(number, digits);
    },
  ],
  safe: [[], (value, call) => new Markup(text(value, call))],
  select: chosen(true, false),
  selectattr: chosen(true, true),
  slice: [
    ['slices', 'fill_with'],
    (value, call) => {
      const items = list(value, call);
      const count = call.args.integer('slices');
      if (count < 1) throw new Error('slice: expected at least 1');
      call.budget.entries(count);
      const [size, longer] = [Math.floor(items.length / count), items.length % count];
      const fill = call.args.get('fill_with');
      const parts = Array.from({ length: count }, (_, i) => {
        const start = i * size + Math.min(i, longer);
        const part = items.slice(start, start + size + (i < longer ? 1 : 0));
        return fill !== undefined && fill !== null && i >= longer ? [...part, fill] : part;
      });
      return new Sequence('generator', parts);
    },
  ],
  sort: [
    ['reverse', 'case_sensitive', 'attribute'],
    (value, call) => {
      // Python compares lists of keys, so two that are undefined are equal.
      return sorted(list(value, call), keysFor(call), call.args.flag('reverse'), call.budget);
    },
  ],
  string: [[], (value, call) => text(value, call)],
  striptags: [[], (value, call) => call.budget.text(withoutTags(text(value, call)))],
  sum: [
    ['attribute', 'start'],
    (value, call) => {
      let total: Value = call.args.has('start') ? call.args.get('start') : 0n;
      for (const item of list(value, call))
        total = calculate('+', total, reach(item, call.args.get('attribute') ?? null, call.host), call.budget);
      return total;
    },
  ],
  title: [[], (value, call) => titleWords(text(value, call))],
  tojson: [
    ['ensure_ascii', 'indent', 'separators', 'sort_keys'],
    (value, { args, budget }) => {
      for (const name of ['indent', 'separators'])
        if (args.has(name) && args.get(name) === undefined)
          throw new Error(`tojson: the value of ${name} is undefined`);
      if (typeof args.get('indent') === 'bigint') bounded(args.integer('indent'), budget);
      return budget.text(
        writeJson(
          value,
          jsonStyle((name) => args.get(name)),
          budget,
        ),
      );
    },
  ],
  trim: [['chars'], (value, call) => strip(text(value, call), 'both', call.args.optionalText('chars'))],
  truncate: [['length', 'killwords', 'end', 'leeway'], (value, call) => truncated(value, call)],
  unique: [
    ['case_sensitive', 'attribute'],
    (value, call) => {
      const key = keyFor(call);
      const seen: Value[] = [];
      const items = list(value, call).filter((item) => {
        const each = key(item);
        if (seen.some((other) => equals(each, other, call.budget))) return false;
        seen.push(each);
        return true;
      });
      return new Sequence('generator', items);
    },
  ],
  upper: [[], (value, call) => text(value, call).toUpperCase()],
  urlencode: [
    [],
    (value, call) => {
      const { budget } = call;
      if (typeof value === 'string' || !isIterable(value)) return budget.text(urlQuoted(text(value, call), false));
      const pairs = isMap(value) ? [...value] : list(value, call).map((pair) => [...list(pair, call)]);
      const quoted = pairs.map((pair) => {
        if (pair.length !== 2) throw new Error('urlencode: expected pairs of a name and a value');
        return pair.map((part) => urlQuoted(text(part, call), true)).join('=');
      });
      return budget.text(quoted.join('&'));
    },
  ],
  wordcount: [[], (value, call) => BigInt(text(value, call).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0)],
  wordwrap: [
    ['width', 'break_long_words', 'wrapstring', 'break_on_hyphens'],
    (value, { args, budget }) => {
      if (typeof value !== 'string') throw new Error(`wordwrap: expected a text, got ${typeName(value)}`);
      const wrapping = {
        width: args.integer('width', 79),
        end: args.optionalText('wrapstring') ?? '\n',
        breaksWords: !args.has('break_long_words') || truthy(args.get('break_long_words')),
        breaksAtHyphens: !args.has('break_on_hyphens') || truthy(args.get('break_on_hyphens')),
      };
      return wordWrapped(value, wrapping, budget);
    },
  ],
};

/** An entry of `groupby`: a pair that has names. */
class Group extends Tuple {
  readonly grouper: Value;
  readonly list: readonly Value[];

  constructor(grouper: Value, list: readonly Value[]) {
    super([grouper, list]);
    this.grouper = grouper;
    this.list = list;
  }
}

/** `entry.grouper` and `entry.list` of `groupby`. */
export function groupAttribute(value: Value, name: string): Value {
  if (!(value instanceof Group)) return undefined;
  return name === 'grouper' ? value.grouper : name === 'list' ? value.list : undefined;
}

/** Whether a value can be looped over. Nothing is taken from a generator. */
export const isIterable = (value: Value) => value instanceof Sequence || itemsOf(value) !== undefined;

export function applyFilter(host: Host, name: string, value: Value, args: readonly Value[], named: Named): Value {
  if (!Object.hasOwn(filters, name))
    throw new Error(REFUSED.has(name) ? `drmas does not play the filter '${name}'` : `there is no filter '${name}'`);
  if (value instanceof Markup && ESCAPED.has(name)) return value;
  const [parameters, run] = filters[name] ?? [[], () => undefined];
  const given = new Arguments(name, OPEN.has(name) ? undefined : parameters, args, named);
  const result = run(plain(value), { args: given, host, budget: host.budget });
  return value instanceof Markup && typeof result === 'string' && MARKUP.has(name) ? new Markup(result) : result;
}

/** Filters of jinja2 that write HTML, or random or Python's own values: no prompt has them. */
const REFUSED = new Set(['pprint', 'random', 'urlize', 'xmlattr']);

/** Filters that leave markup as it is. */
const ESCAPED = new Set(['e', 'escape', 'safe']);

/** Filters that return markup for markup. */
const MARKUP = new Set(['capitalize', 'indent', 'lower', 'replace', 'string', 'title', 'trim', 'upper']);

/** Filters that take any values. */
const OPEN = new Set(['format', 'map', 'select', 'reject', 'selectattr', 'rejectattr']);
