/** The tests of jinja2: `value is name`. */
import type { Budget } from './budget.js';
import { filters, isIterable } from './filters.js';
import { calculate, contains } from './operators.js';
import {
  Callable,
  compare,
  equals,
  isAttributes,
  isList,
  isMap,
  isNumber,
  keyOf,
  Markup,
  plain,
  Sequence,
  Tuple,
  textOf,
  type Value,
} from './values.js';

type Test = (value: Value, args: readonly Value[], budget: Budget) => boolean;

const rest = (value: Value, by: Value, budget: Budget) => calculate('%', value, by, budget);
const isInteger = (value: Value) => typeof value === 'bigint';
const equal: Test = (value, [other], budget) => equals(value, other, budget);
const ordered =
  (holds: (order: number) => boolean): Test =>
  (value, [other], budget) =>
    holds(compare(value, other, budget));
const greater = ordered((order) => order > 0);
const less = ordered((order) => order < 0);
const atLeast = ordered((order) => order >= 0);
const atMost = ordered((order) => order <= 0);
const unequal: Test = (value, args, budget) => !equal(value, args, budget);

const tests: Readonly<Record<string, Test>> = {
  '!=': unequal,
  '<': less,
  '<=': atMost,
  '==': equal,
  '>': greater,
  '>=': atLeast,
  boolean: (value) => typeof value === 'boolean',
  callable: (value) =>
    value === undefined || value instanceof Callable || (isAttributes(value) && value.call !== undefined),
  defined: (value) => value !== undefined,
  divisibleby: (value, [by], budget) => equals(rest(value, by, budget), 0n, budget),
  eq: equal,
  equalto: equal,
  escaped: () => false, // `applyTest` sees markup
  even: (value, _args, budget) => equals(rest(value, 2n, budget), 0n, budget),
  false: (value) => value === false,
  filter: (value) => typeof keyOf(value) === 'string' && Object.hasOwn(filters, String(value)),
  float: (value) => typeof value === 'number',
  ge: atLeast,
  greaterthan: greater,
  gt: greater,
  in: (value, [container], budget) => contains(container, value, budget),
  integer: isInteger,
  iterable: isIterable,
  le: atMost,
  lessthan: less,
  lower: (value, _args, budget) => isCased(textOf(value, budget), (text) => text.toLowerCase()),
  lt: less,
  mapping: isMap,
  ne: unequal,
  none: (value) => value === null,
  number: isNumber,
  odd: (value, _args, budget) => equals(rest(value, 2n, budget), 1n, budget),
  sameas: (value, [other]) => value === other && value !== undefined,
  sequence: (value) =>
    value === undefined ||
    typeof value === 'string' ||
    isList(value) ||
    isMap(value) ||
    value instanceof Tuple ||
    (value instanceof Sequence && value.kind === 'range'),
  string: (value) => typeof value === 'string',
  test: (value) => typeof keyOf(value) === 'string' && Object.hasOwn(tests, String(value)),
  true: (value) => value === true,
  undefined: (value) => value === undefined,
  upper: (value, _args, budget) => isCased(textOf(value, budget), (text) => text.toUpperCase()),
};

const isCased = (text: string, change: (text: string) => string) =>
  change(text) === text && text.toLowerCase() !== text.toUpperCase();

/** The tests that compare with a value. */
const BINARY = new Set([
  ...['==', '!=', '<', '<=', '>', '>=', 'eq', 'equalto', 'ne', 'lt', 'lessthan', 'le', 'gt', 'greaterthan', 'ge'],
  ...['divisibleby', 'in', 'sameas'],
]);

export function applyTest(name: string, value: Value, args: readonly Value[], budget: Budget): boolean {
  const test = Object.hasOwn(tests, name) ? tests[name] : undefined;
  if (test === undefined) throw new Error(`there is no test '${name}'`);
  const expected = BINARY.has(name) ? 1 : 0;
  if (args.length !== expected) throw new Error(`the test '${name}' takes ${expected} values, got ${args.length}`);
  return name === 'escaped' ? value instanceof Markup : test(plain(value), args, budget);
}
