/**
 * Whether a value fits a JSON schema (drafts 4 to 2020-12). Schemas come from clients of servers, so the work of a
 * check has a limit, and patterns are matched in linear time.
 */
import { RE2JS } from 're2js';
import { z } from 'zod';
import { ArgumentError } from '../errors.js';
import { asWritten, parseWithBigInts } from '../exact-json.js';
import type { JsonSchema } from '../message.js';
import { isObject, jsonValue } from './objects.js';

/** The most steps of a check: a step looks at one keyword, one entry of a list, or a part of a text. */
const MOST_STEPS = 300_000;
/** The deepest recursion: a schema that refers to itself without going into the value has no end. */
const DEEPEST_CHECK = 1_500;
/** Longer patterns restrict nothing. */
const LONGEST_PATTERN = 2_000;
/** States of a pattern's automaton, times characters of a text, that are as much work as one step. */
const STATES_OF_STEP = 100;
/** The least work of a match, and of reading a pattern. */
const [MATCH_STEPS, COMPILE_STEPS] = [4, 50];

/**
 * Whether a value of JSON fits a schema. Keywords that are not in `schemaKeywords`, malformed keywords, references to
 * other documents, and patterns that need backtracking restrict nothing.
 * @throws ArgumentError if the check takes too many steps
 */
export function fitsSchema(value: unknown, schema: JsonSchema): boolean {
  const written = asWritten(schema);
  return new SchemaCheck(written).fits(value, written);
}

/**
 * Whether a text is JSON that fits a schema, integers of any size included.
 * @throws ArgumentError if the check takes too many steps
 */
export function fitsJsonSchema(text: string, schema: JsonSchema): boolean {
  return jsonValue(text) !== undefined && fitsSchema(parseWithBigInts(text), schema);
}

type Keyword = (value: unknown, operand: unknown, schema: Record<string, unknown>, check: SchemaCheck) => boolean;

/** A value that a schema accepts only because a part of the schema cannot be read is `unknown`. */
type Verdict = 'fits' | 'unfit' | 'unknown';

/** JavaScript compares numbers with bigints by their values. */
const isNumber = (value: unknown): value is number | bigint => typeof value === 'number' || typeof value === 'bigint';
const isText = (value: unknown): value is string => typeof value === 'string';
const listOf = (operand: unknown): readonly unknown[] => (Array.isArray(operand) ? operand : []);
const tableOf = (operand: unknown): Record<string, unknown> => (isObject(operand) ? operand : {});

type Comparison = (size: number | bigint, limit: number | bigint) => boolean;

/** A keyword that restricts the values for which `measure` gives a number. */
const compared =
  <Size extends number | bigint>(measure: (value: unknown) => Size | undefined, holds: Comparison): Keyword =>
  (value, limit) => {
    const size = isNumber(limit) ? measure(value) : undefined;
    return size === undefined || !isNumber(limit) || holds(size, limit);
  };

const numberOf = (value: unknown) => (isNumber(value) ? value : undefined);
const entriesOf = (value: unknown) => (Array.isArray(value) ? value.length : undefined);
const propertiesIn = (value: unknown) => (isObject(value) ? Object.keys(value).length : undefined);

/** A text's length in characters, as JSON schema counts them: a surrogate pair is one. */
function lengthOf(value: unknown): number | undefined {
  if (!isText(value)) return undefined;
  let length = 0;
  for (const _ of value) length++;
  return length;
}

const atLeast: Comparison = (size, limit) => size >= limit;
const atMost: Comparison = (size, limit) => size <= limit;

const isWhole = (value: unknown) => typeof value === 'bigint' || Number.isInteger(value);

/** Decimal fractions such as 0.01 are not exact, and neither are quotients by them. */
const isMultiple: Comparison = (value, divisor) => {
  if (divisor <= 0) return true;
  if (isWhole(value) && isWhole(divisor)) return BigInt(value) % BigInt(divisor) === 0n;
  if (isWhole(divisor)) return false;
  const quotient = Number(value) / Number(divisor);
  return Math.abs(quotient - Math.round(quotient)) <= 1e-12 * Math.abs(quotient);
};

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  number: isNumber,
  integer: isWhole,
  string: isText,
  array: Array.isArray,
  object: isObject,
};
/** An unknown type restricts nothing. */
const isOfType = (value: unknown, name: unknown): boolean =>
  !isText(name) || !Object.hasOwn(types, name) || types[name]?.(value) === true;

const formats: Readonly<Record<string, z.ZodType>> = {
  date: z.iso.date(),
  time: z.iso.time(),
  'date-time': z.iso.datetime({ offset: true, local: true }),
  duration: z.iso.duration(),
  email: z.email(),
  uri: z.url(),
  uuid: z.guid(),
  ipv4: z.ipv4(),
  ipv6: z.ipv6(),
};

/** Dependencies of properties: lists of further names, or schemas of the object. */
const dependencies: Keyword = (value, operand, _, check) =>
  !isObject(value) ||
  Object.entries(tableOf(operand)).every(([name, needed]) => {
    check.step();
    if (!Object.hasOwn(value, name)) return true;
    return Array.isArray(needed) ? hasAll(value, needed, check) : check.fits(value, needed);
  });

function hasAll(value: Record<string, unknown>, names: readonly unknown[], check: SchemaCheck): boolean {
  check.step(names.length);
  return names.every((name) => !isText(name) || Object.hasOwn(value, name));
}

const reference: Keyword = (value, operand, schema, check) => check.fits(value, check.target(operand, schema));

const keywords: Readonly<Record<string, Keyword>> = {
  $ref: reference,
  $dynamicRef: reference,
  $recursiveRef: reference,
  type: (value, operand) => (Array.isArray(operand) ? operand : [operand]).some((name) => isOfType(value, name)),
  enum: (value, operand, _, check) => !Array.isArray(operand) || operand.some((each) => check.equal(each, value)),
  const: (value, operand, _, check) => check.equal(operand, value),
  minimum: compared(numberOf, atLeast),
  maximum: compared(numberOf, atMost),
  exclusiveMinimum: (value, limit, { minimum }) => {
    const least = limit === true ? minimum : limit; // draft 4 has true
    return !isNumber(value) || !isNumber(least) || value > least;
  },
  exclusiveMaximum: (value, limit, { maximum }) => {
    const most = limit === true ? maximum : limit;
    return !isNumber(value) || !isNumber(most) || value < most;
  },
  multipleOf: compared(numberOf, isMultiple),
  minLength: compared(lengthOf, atLeast),
  maxLength: compared(lengthOf, atMost),
  pattern: (value, operand, _, check) => !isText(value) || !isText(operand) || check.matches(value, operand) !== false,
  format: (value, operand) =>
    !isText(value) ||
    !isText(operand) ||
    !Object.hasOwn(formats, operand) ||
    formats[operand]?.safeParse(value).success !== false,
  minItems: compared(entriesOf, atLeast),
  maxItems: compared(entriesOf, atMost),
  uniqueItems: (value, operand, _, check) =>
    operand !== true || !Array.isArray(value) || new Set(value.map((each) => check.textOf(each))).size === value.length,
  prefixItems: (value, operand, _, check) =>
    !Array.isArray(value) || listOf(operand).every((each, i) => i >= value.length || check.fits(value[i], each)),
  items: (value, operand, { prefixItems }, check) => {
    if (!Array.isArray(value)) return true;
    // Before 2020-12, a list is what prefixItems is now.
    if (Array.isArray(operand)) return operand.every((each, i) => i >= value.length || check.fits(value[i], each));
    return value.slice(listOf(prefixItems).length).every((each) => check.fits(each, operand));
  },
  additionalItems: (value, operand, { items }, check) =>
    !Array.isArray(value) ||
    !Array.isArray(items) ||
    value.slice(items.length).every((each) => check.fits(each, operand)),
  contains: (value, operand, { minContains = 1, maxContains }, check) => {
    if (!Array.isArray(value)) return true;
    const { possible, certain } = counted(value.map((each) => check.verdict(each, operand)));
    return (!isNumber(minContains) || possible >= minContains) && (!isNumber(maxContains) || certain <= maxContains);
  },
  minProperties: compared(propertiesIn, atLeast),
  maxProperties: compared(propertiesIn, atMost),
  required: (value, operand, _, check) => !isObject(value) || hasAll(value, listOf(operand), check),
  properties: (value, operand, _, check) => {
    if (!isObject(value)) return true;
    return Object.entries(tableOf(operand)).every(([name, schema]) => {
      check.step();
      return !Object.hasOwn(value, name) || check.fits(value[name], schema);
    });
  },
  patternProperties: (value, operand, _, check) => {
    if (!isObject(value)) return true;
    return Object.entries(tableOf(operand)).every(([pattern, schema]) =>
      Object.entries(value).every(([name, each]) => check.matches(name, pattern) !== true || check.fits(each, schema)),
    );
  },
  additionalProperties: (value, operand, { properties, patternProperties }, check) => {
    if (!isObject(value)) return true;
    const known = tableOf(properties);
    const patterns = Object.keys(tableOf(patternProperties));
    const isKnown = (name: string) =>
      Object.hasOwn(known, name) || patterns.some((pattern) => check.matches(name, pattern) !== false);
    return Object.entries(value).every(([name, each]) => isKnown(name) || check.fits(each, operand));
  },
  propertyNames: (value, operand, _, check) =>
    !isObject(value) || Object.keys(value).every((name) => check.fits(name, operand)),
  dependencies,
  dependentRequired: dependencies,
  dependentSchemas: dependencies,
  unevaluatedItems: (_value, _operand, _schema, check) => check.unread(),
  unevaluatedProperties: (_value, _operand, _schema, check) => check.unread(),
  allOf: (value, operand, _, check) => listOf(operand).every((each) => check.fits(value, each)),
  anyOf: (value, operand, _, check) => !Array.isArray(operand) || operand.some((each) => check.fits(value, each)),
  oneOf: (value, operand, _, check) => {
    if (!Array.isArray(operand)) return true;
    const { possible, certain } = counted(operand.map((each) => check.verdict(value, each)));
    return possible >= 1 && certain <= 1;
  },
  not: (value, operand, _, check) => !isSchema(operand) || check.verdict(value, operand) !== 'fits',
  if: (value, operand, { then = true, else: otherwise = true }, check) => {
    const verdict = isSchema(operand) ? check.verdict(value, operand) : 'unknown';
    if (verdict === 'unknown') return check.fits(value, then) || check.fits(value, otherwise);
    return check.fits(value, verdict === 'fits' ? then : otherwise);
  },
};

/** Of some values: how many fit for certain, and how many may fit. */
const counted = (verdicts: readonly Verdict[]) => ({
  certain: verdicts.filter((verdict) => verdict === 'fits').length,
  possible: verdicts.filter((verdict) => verdict !== 'unfit').length,
});

const isSchema = (value: unknown) => typeof value === 'boolean' || isObject(value);

/** The keywords that a check reads; those of `unevaluated` restrict nothing. */
export const schemaKeywords: readonly string[] = Object.keys(keywords);

/** The address of a document without an `$id`. */
const DOCUMENT = 'https://document.invalid/';
/** Keywords with values, in which no schema stands, and with schemas by names, which are no keywords. */
const VALUES = new Set(['enum', 'const', 'default', 'examples']);
const TABLES = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependencies', 'dependentSchemas']);

interface Addresses {
  /** Schemas by address, as `$id` says, and by address and anchor. */
  readonly schemas: ReadonlyMap<string, unknown>;
  /** The address from which the references of each schema start. */
  readonly bases: ReadonlyMap<unknown, string>;
}

/** A reference as an address and what stands behind its `#`. A relative one starts at a base. */
function addressOf(reference: string, base: string): { readonly address: string; readonly fragment: string } {
  const [place = '', ...behind] = reference.split('#');
  const address = place === '' ? base : URL.canParse(place, base) ? new URL(place, base).href : place;
  return { address, fragment: behind.join('#') };
}

class SchemaCheck {
  readonly #root: JsonSchema;
  readonly #patterns = new Map<string, RE2JS | undefined>();
  #addresses: Addresses | undefined;
  #steps = 0;
  #depth = 0;
  #unread = 0;

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  /** Counts work. @throws ArgumentError beyond the limit */
  step(count = 1): void {
    this.#steps += count;
    if (this.#steps > MOST_STEPS || this.#depth > DEEPEST_CHECK)
      throw new ArgumentError(
        `a JSON schema needs more than ${MOST_STEPS} steps, or refers to itself more than ${DEEPEST_CHECK} times, for one value`,
      );
  }

  fits(value: unknown, schema: unknown): boolean {
    this.step();
    if (!isObject(schema)) return schema !== false;
    this.#depth++;
    const isAlone = schema.$ref !== undefined && isOldDraft(this.#root);
    for (const [name, operand] of isAlone ? [['$ref', schema.$ref] as const] : Object.entries(schema)) {
      this.step();
      const keyword = Object.hasOwn(keywords, name) ? keywords[name] : undefined;
      if (keyword !== undefined && !keyword(value, operand, schema, this)) {
        this.#depth--;
        return false;
      }
    }
    this.#depth--;
    return true;
  }

  /** Like `fits`, for keywords that turn the answer round. */
  verdict(value: unknown, schema: unknown): Verdict {
    const before = this.#unread;
    if (!this.fits(value, schema)) return 'unfit';
    return this.#unread === before ? 'fits' : 'unknown';
  }

  /** Counts a part of the schema that cannot be read, and so restricts nothing. */
  unread(): true {
    this.#unread++;
    return true;
  }

  /** The schema that a reference names; `true`, which restricts nothing, if it is not in this document. */
  target(reference: unknown, schema: unknown): unknown {
    return (isText(reference) ? this.#found(reference, schema) : undefined) ?? this.unread();
  }

  #found(reference: string, schema: unknown): unknown {
    this.#addresses ??= this.#readAddresses();
    const { schemas, bases } = this.#addresses;
    const { address, fragment } = addressOf(reference, bases.get(schema) ?? bases.get(this.#root) ?? DOCUMENT);
    if (!fragment.startsWith('/')) return schemas.get(fragment === '' ? address : `${address}#${decoded(fragment)}`);
    let found = schemas.get(address);
    for (const part of fragment.slice(1).split('/')) {
      this.step();
      const key = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~');
      if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined;
      found = (found as Record<string, unknown>)[key];
    }
    return found;
  }

  #readAddresses(): Addresses {
    const schemas = new Map<string, unknown>([[DOCUMENT, this.#root]]);
    const bases = new Map<unknown, string>();
    const rest = [{ node: this.#root as unknown, base: DOCUMENT, isSchema: true }];
    for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
      this.step();
      const { node, isSchema } = next;
      let { base } = next;
      if (typeof node !== 'object' || node === null) continue;
      const { $id, id, $anchor, $dynamicAnchor } = isSchema ? tableOf(node) : {};
      if (!('$ref' in node && isOldDraft(this.#root)))
        for (const name of [id, $id].filter(isText)) {
          const { address, fragment } = addressOf(name, base);
          if (fragment === '') base = address;
          schemas.set(fragment === '' ? address : `${address}#${fragment}`, node);
        }
      for (const name of [$anchor, $dynamicAnchor]) if (isText(name)) schemas.set(`${base}#${name}`, node);
      bases.set(node, base);
      for (const [name, inner] of Object.entries(node))
        if (!isSchema || Array.isArray(node) || !VALUES.has(name))
          rest.push({ node: inner, base, isSchema: !isSchema || Array.isArray(node) || !TABLES.has(name) });
    }
    return { schemas, bases };
  }

  /** Whether a pattern occurs in a text; undefined for a pattern that linear time does not suffice for. */
  matches(text: string, pattern: string): boolean | undefined {
    if (!this.#patterns.has(pattern)) this.#patterns.set(pattern, this.#compiled(pattern));
    const compiled = this.#patterns.get(pattern);
    if (compiled === undefined) {
      this.unread();
      return undefined;
    }
    this.step(MATCH_STEPS + Math.ceil((text.length * compiled.programSize()) / STATES_OF_STEP));
    return compiled.matcher(text).find();
  }

  #compiled(pattern: string): RE2JS | undefined {
    this.step(COMPILE_STEPS + 10 * pattern.length);
    if (pattern.length > LONGEST_PATTERN) return undefined;
    try {
      return RE2JS.compile(withAllSpaces(RE2JS.translateRegExp(pattern)));
    } catch {
      return undefined; // look-around and references need backtracking
    }
  }

  /** Whether two values of JSON are equal; the order of keys does not matter. */
  equal(one: unknown, other: unknown): boolean {
    this.step();
    if (Array.isArray(one) && Array.isArray(other))
      return one.length === other.length && one.every((each, i) => this.equal(each, other[i]));
    if (isNumber(one) && isNumber(other)) return one >= other && one <= other; // of bigints and numbers
    if (!isObject(one) || !isObject(other)) return one === other;
    const names = Object.keys(one);
    return (
      names.length === Object.keys(other).length &&
      names.every((name) => Object.hasOwn(other, name) && this.equal(one[name], other[name]))
    );
  }

  /** A text that equal values of JSON share. */
  textOf(value: unknown): string {
    this.step();
    if (Array.isArray(value)) return `[${value.map((each) => this.textOf(each)).join()}]`;
    if (isWhole(value)) return String(BigInt(value as number | bigint));
    if (!isObject(value)) return JSON.stringify(value) ?? '';
    const names = Object.keys(value).sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${this.textOf(value[name])}`).join()}}`;
  }
}

/** White space of ECMA-262, and all other characters, as parts of a class. RE2's `\s` is ASCII's white space. */
const SPACES =
  '\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
const OTHERS =
  '\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}' +
  '\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}';

/** A pattern of RE2 whose `\s` and `\S` are those of ECMA-262. */
function withAllSpaces(pattern: string): string {
  let inClass = false;
  return pattern.replace(/\\[\s\S]|[[\]]/g, (mark) => {
    if (mark === '[' || mark === ']') inClass = mark === '[';
    const part = mark === '\\s' ? SPACES : mark === '\\S' ? OTHERS : undefined;
    return part === undefined ? mark : inClass ? part : `[${part}]`;
  });
}

/** In drafts before 2019-09, the keywords beside a reference do not count. */
const isOldDraft = ({ $schema }: JsonSchema) => isText($schema) && /draft-0[3-7]\b/.test($schema);

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
