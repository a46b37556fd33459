/** The methods of Python's texts, dictionaries, lists and numbers that a template may call. */
import { Arguments } from './arguments.js';
import type { Budget } from './budget.js';
import { formatText } from './format-text.js';
import { capitalize, caseFolded, splitLines, strip, title, UNPRINTABLE, WORD } from './python-text.js';
import { withoutTabs } from './text-filters.js';
import {
  Callable,
  equals,
  isAstral,
  isList,
  isMap,
  isNumber,
  iterate,
  keyIn,
  keyOf,
  points,
  Sequence,
  Tuple,
  typeName,
  type Value,
} from './values.js';

interface Call {
  readonly args: Arguments;
  readonly budget: Budget;
  readonly reach: (value: Value, name: string, isAttribute: boolean) => Value;
}

type Method<Self> = readonly [parameters: readonly string[], run: (self: Self, call: Call) => Value];

const all = (pattern: RegExp) => [[], (self: string) => pattern.test(self)] as const;
/** Whether a text has letters, and all of them are of one case. */
const isCase = (same: (text: string) => string): Method<string> => [
  [],
  (self) => self === same(self) && self.toLowerCase() !== self.toUpperCase(),
];

/** The text from `start` to `end`, and the code points before it; undefined if `end` lies before `start`. */
function part(self: string, args: Arguments): readonly [text: string, before: number] | undefined {
  if (!args.has('start') && !args.has('end')) return [self, 0];
  const all = points(self);
  const bound = (name: string, otherwise: number) => {
    const place = args.get(name) === null ? otherwise : args.integer(name, otherwise);
    return place < 0 ? Math.max(0, place + all.length) : place;
  };
  const [start, end] = [bound('start', 0), Math.min(all.length, bound('end', all.length))];
  return start > end ? undefined : [all.slice(start, end).join(''), start];
}

/** The place of a text in code points; -1 if it is not there. */
function place(self: string, { args, budget }: Call, last: boolean): number {
  const [text, before] = part(self, args) ?? [];
  if (text === undefined || before === undefined) return -1;
  budget.length(text.length);
  const at = last ? text.lastIndexOf(args.text('sub')) : text.indexOf(args.text('sub'));
  if (at < 0) return -1;
  return before + (isAstral(text) ? points(text.slice(0, at)).length : at);
}

const find = (last: boolean, required: boolean): Method<string> => [
  ['sub', 'start', 'end'],
  (self, call) => {
    const at = place(self, call, last);
    if (at < 0 && required) throw new Error('substring not found');
    return BigInt(at);
  },
];

const begins = (test: (text: string, with_: string) => boolean): Method<string> => [
  ['prefix', 'start', 'end'],
  (self, { args }) => {
    const prefix = args.get('prefix');
    const [text] = part(self, args) ?? [];
    if (text === undefined) return false;
    if (prefix instanceof Tuple) return prefix.items.some((each) => typeof each === 'string' && test(text, each));
    return test(text, args.text('prefix'));
  },
];

const stripped = (side: 'both' | 'left' | 'right'): Method<string> => [
  ['chars'],
  (self, { args, budget }) => budget.text(strip(self, side, args.optionalText('chars'))),
];

const aligned = (left: (missing: number, width: number) => number): Method<string> => [
  ['width', 'fillchar'],
  (self, { args, budget }) => {
    const width = args.integer('width');
    budget.length(Math.max(0, width));
    const missing = Math.max(0, width - points(self).length);
    const fill = args.text('fillchar', ' ');
    if (points(fill).length !== 1) throw new Error('the fill character must be exactly one character long');
    const before = left(missing, width);
    return fill.repeat(before) + self + fill.repeat(missing - before);
  },
];

const split = (last: boolean): Method<string> => [
  ['sep', 'maxsplit'],
  (self, { args, budget }) => {
    budget.length(self.length);
    const most = args.integer('maxsplit', -1);
    const separator = args.optionalText('sep');
    const parts = separator === undefined ? words(self, most, last) : cut(self, separator, most, last);
    budget.entries(parts.length);
    return parts;
  },
];

function words(text: string, most: number, last: boolean): string[] {
  const found = [...text.matchAll(WORD)];
  if (most < 0 || found.length <= most) return found.map(([word]) => word);
  if (!last) {
    const rest = found[most];
    return [...found.slice(0, most).map(([word]) => word), text.slice(rest?.index)];
  }
  const rest = found[found.length - most - 1];
  const end = rest === undefined ? 0 : rest.index + rest[0].length;
  return [...(end > 0 ? [text.slice(0, end)] : []), ...(most === 0 ? [] : found.slice(-most).map(([word]) => word))];
}

function cut(text: string, separator: string, most: number, last: boolean): string[] {
  if (separator === '') throw new Error('empty separator');
  const parts = text.split(separator);
  if (most < 0 || parts.length <= most + 1) return parts;
  if (last) {
    const end = parts.length - most;
    return [parts.slice(0, end).join(separator), ...parts.slice(end)];
  }
  return [...parts.slice(0, most), parts.slice(most).join(separator)];
}

const partition = (last: boolean): Method<string> => [
  ['sep'],
  (self, { args, budget }) => {
    budget.length(self.length);
    const separator = args.text('sep');
    if (separator === '') throw new Error('empty separator');
    const at = last ? self.lastIndexOf(separator) : self.indexOf(separator);
    if (at < 0) return new Tuple(last ? ['', '', self] : [self, '', '']);
    return new Tuple([self.slice(0, at), separator, self.slice(at + separator.length)]);
  },
];

/** `text.replace(old, new)`, which pays for its result before it makes it. */
export function replaced(self: string, old: string, by: string, most: number, budget: Budget): string {
  budget.length(self.length);
  const parts = old === '' ? ['', ...points(self), ''] : self.split(old);
  const count = most < 0 ? parts.length - 1 : Math.min(most, parts.length - 1);
  budget.length(self.length + count * Math.max(0, by.length - old.length));
  return (
    parts.slice(0, count + 1).join(by) +
    parts
      .slice(count + 1)
      .map((each) => old + each)
      .join('')
  );
}

function joinedTexts(separator: string, items: readonly Value[], budget: Budget): string {
  const texts = items.map((item, i) => {
    if (typeof item !== 'string') throw new Error(`sequence item ${i}: expected a text, got ${typeName(item)}`);
    return item;
  });
  budget.length(texts.reduce((sum, { length }) => sum + length + separator.length, 0));
  return texts.join(separator);
}

const changed = (change: (text: string) => string): Method<string> => [
  [],
  (self, { budget }) => change(budget.text(self)),
];

const ofTexts: Readonly<Record<string, Method<string>>> = {
  capitalize: changed(capitalize),
  casefold: changed(caseFolded),
  center: aligned((missing, width) => Math.floor(missing / 2) + (missing & width & 1)),
  count: [
    ['sub', 'start', 'end'],
    (self, { args, budget }) => {
      budget.length(self.length);
      const [text] = part(self, args) ?? [];
      const sub = args.text('sub');
      if (text === undefined) return 0n;
      return BigInt(sub === '' ? points(text).length + 1 : text.split(sub).length - 1);
    },
  ],
  endswith: begins((text, end) => text.endsWith(end)),
  find: find(false, false),
  format: [
    [],
    (self, { args, reach, budget }) => formatText(budget.text(self), args.rest, args.restNamed, reach, budget),
  ],
  expandtabs: [['tabsize'], (self, { args, budget }) => withoutTabs(self, args.integer('tabsize', 8), budget)],
  format_map: [
    ['mapping'],
    (self, { args, reach, budget }) => {
      const mapping = args.get('mapping');
      if (!isMap(mapping)) throw new Error(`format_map: expected a mapping, got ${typeName(mapping)}`);
      const named = new Map([...mapping].map(([name, value]) => [String(name), value]));
      return formatText(budget.text(self), [], named, reach, budget);
    },
  ],
  index: find(false, true),
  isalnum: all(/^[\p{L}\p{N}]+$/u),
  isalpha: all(/^\p{L}+$/u),
  isascii: all(/^[\0-\x7f]*$/),
  isdecimal: all(/^\p{Nd}+$/u),
  isdigit: all(/^[\p{Nd}²³¹⁰⁴-⁹₀-₉]+$/u),
  isidentifier: all(/^[\p{XIDS}_]\p{XIDC}*$/u),
  islower: isCase((text) => text.toLowerCase()),
  isnumeric: all(/^\p{N}+$/u),
  isprintable: [[], (self) => self.replaceAll('\\', '').search(UNPRINTABLE) < 0],
  isspace: [[], (self) => self !== '' && strip(self, 'both') === ''],
  istitle: [[], (self) => title(self) === self && self.toLowerCase() !== self.toUpperCase()],
  isupper: isCase((text) => text.toUpperCase()),
  join: [
    ['iterable'],
    (self, { args, budget }) => joinedTexts(self, iterate(args.required('iterable'), budget), budget),
  ],
  ljust: aligned(() => 0),
  lower: changed((text) => text.toLowerCase()),
  lstrip: stripped('left'),
  partition: partition(false),
  removeprefix: [
    ['prefix'],
    (self, { args }) => (self.startsWith(args.text('prefix')) ? self.slice(args.text('prefix').length) : self),
  ],
  removesuffix: [
    ['suffix'],
    (self, { args }) =>
      self.endsWith(args.text('suffix')) ? self.slice(0, self.length - args.text('suffix').length) : self,
  ],
  replace: [
    ['old', 'new', 'count'],
    (self, { args, budget }) => replaced(self, args.text('old'), args.text('new'), args.integer('count', -1), budget),
  ],
  rfind: find(true, false),
  rindex: find(true, true),
  rjust: aligned((missing) => missing),
  rpartition: partition(true),
  rsplit: split(true),
  rstrip: stripped('right'),
  split: split(false),
  splitlines: [
    ['keepends'],
    (self, { args, budget }) => {
      budget.length(self.length);
      const lines = splitLines(self, args.flag('keepends'));
      budget.entries(lines.length);
      return lines;
    },
  ],
  startswith: begins((text, start) => text.startsWith(start)),
  strip: stripped('both'),
  swapcase: changed((text) =>
    text.replace(/\p{L}/gu, (each) => (each === each.toLowerCase() ? each.toUpperCase() : each.toLowerCase())),
  ),
  title: changed(title),
  upper: changed((text) => text.toUpperCase()),
  zfill: [
    ['width'],
    (self, { args, budget }) => {
      budget.length(Math.max(0, args.integer('width')));
      const [, sign = '', rest = ''] = /^([-+]?)([\s\S]*)$/.exec(self) ?? [];
      return sign + '0'.repeat(Math.max(0, args.integer('width') - points(self).length)) + rest;
    },
  ],
};

const view = (kind: 'dict_items' | 'dict_keys' | 'dict_values', items: readonly Value[], budget: Budget) => {
  budget.entries(items.length);
  return new Sequence(kind, items);
};

const ofDicts: Readonly<Record<string, Method<ReadonlyMap<Value, Value>>>> = {
  copy: [
    [],
    (self, { budget }) => {
      budget.entries(self.size);
      return new Map(self);
    },
  ],
  get: [
    ['key', 'default'],
    (self, { args }) => {
      const key = keyIn(self, keyOf(args.required('key')));
      if (self.has(key)) return self.get(key);
      return args.has('default') ? args.get('default') : null;
    },
  ],
  items: [
    [],
    (self, { budget }) =>
      view(
        'dict_items',
        [...self].map((entry) => new Tuple(entry)),
        budget,
      ),
  ],
  keys: [[], (self, { budget }) => view('dict_keys', [...self.keys()], budget)],
  values: [[], (self, { budget }) => view('dict_values', [...self.values()], budget)],
};

const ofLists: Readonly<Record<string, Method<readonly Value[]>>> = {
  copy: [[], (self, { budget }) => [...iterate(self, budget)]],
  count: [
    ['value'],
    (self, { args, budget }) => {
      const value = args.required('value');
      return BigInt(self.filter((each) => equals(each, value, budget)).length);
    },
  ],
  index: [
    ['value'],
    (self, { args, budget }) => {
      const value = args.required('value');
      const at = self.findIndex((each) => equals(each, value, budget));
      if (at < 0) throw new Error('the value is not in the list');
      return BigInt(at);
    },
  ],
};

const ofNumbers: Readonly<Record<string, Method<bigint | number | boolean>>> = {
  is_integer: [[], (self) => Number.isInteger(Number(self))],
};

/** The parts of a number: a whole number is a fraction, and each number is a complex one. */
export function partOfNumber(value: bigint | number | boolean, name: string): Value {
  const isFloat = typeof value === 'number';
  if (name === 'real') return isFloat ? value : BigInt(value);
  if (name === 'imag') return isFloat ? 0 : 0n;
  if (isFloat) return undefined;
  return name === 'numerator' ? BigInt(value) : name === 'denominator' ? 1n : undefined;
}

const UNPLAYED_OF_NUMBERS = ['as_integer_ratio', 'conjugate'];

/** Methods that Python's values have, no prompt needs, and drmas does not play. */
const UNPLAYED: Readonly<Record<string, readonly string[]>> = {
  str: ['encode', 'maketrans', 'translate'],
  dict: ['fromkeys'],
  int: [...UNPLAYED_OF_NUMBERS, 'bit_count', 'bit_length', 'from_bytes', 'to_bytes'],
  bool: [...UNPLAYED_OF_NUMBERS, 'bit_count', 'bit_length', 'from_bytes', 'to_bytes'],
  float: [...UNPLAYED_OF_NUMBERS, 'fromhex', 'hex'],
  range: ['count', 'index', 'start', 'step', 'stop'],
  generator: ['close', 'send', 'throw'],
  dict_items: ['isdisjoint', 'mapping'],
  dict_keys: ['isdisjoint', 'mapping'],
  dict_values: ['mapping'],
};

/** @throws Error for a method that Python has and drmas does not play: it must not read as undefined */
export function refuseUnplayed(value: Value, name: string): void {
  if (UNPLAYED[typeName(value)]?.includes(name))
    throw new Error(`drmas does not play '${name}' of a value of type ${typeName(value)}`);
}

/** A method of a value, bound to it; undefined if it has none of this name. */
export function methodOf(value: Value, name: string, budget: Budget, reach: Call['reach']): Callable | undefined {
  const bound = <Self>(methods: Readonly<Record<string, Method<Self>>>, self: Self): Callable | undefined => {
    if (!Object.hasOwn(methods, name)) return undefined;
    const [parameters, run] = methods[name] ?? [[], () => undefined];
    return new Callable(name, (values, named) => {
      const args = new Arguments(name, name === 'format' ? undefined : parameters, values, named);
      return run(self, { args, budget, reach });
    });
  };
  if (typeof value === 'string') return bound(ofTexts, value);
  if (isMap(value)) return bound(ofDicts, value);
  if (isList(value)) return bound(ofLists, value);
  if (value instanceof Tuple) return name === 'copy' ? undefined : bound(ofLists, value.items);
  return isNumber(value) ? bound(ofNumbers, value) : undefined;
}

/** Methods of Python that change a value, which the sandbox of transformers forbids. */
export const CHANGING = new Set([
  ...['append', 'clear', 'extend', 'insert', 'pop', 'popitem', 'remove', 'reverse', 'setdefault', 'sort', 'update'],
]);
