/** Turns zod's issues into one RecipeError that names the path, the expectation and the actual value. */
import { closest, distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { RecipeError } from '../errors.js';
import type { Issue } from '../task.js';
import { isObject } from './objects.js';

type Path = readonly PropertyKey[];

/** Faults that a message names at most: a list of a thousand wrong numbers is one mistake. */
const MOST_FAULTS = 50;

/** The first issues on one line, each with its dotted path. `of` is how many there are. */
export function issuesText(issues: readonly Issue[], of = issues.length): string {
  const named = issues.slice(0, MOST_FAULTS);
  const texts = named.map(({ path, message }) => (path.length === 0 ? message : `${path.join('.')}: ${message}`));
  return [...texts, ...(of > named.length ? [`and ${of - named.length} more`] : [])].join('; ');
}

/** The end of an error message about a misspelt name: the nearest valid name, and all valid names if they are few. */
export function suggestion(name: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  const meant = nearName(name, names);
  const list = names.length <= 16 ? ` (known: ${names.join(', ')})` : '';
  return `${meant === undefined ? '' : `; did you mean '${meant}'?`}${list}`;
}

/** The valid name that a misspelt one probably stands for. Undefined if it resembles none. */
export function nearName(name: string, names: readonly string[]): string | undefined {
  const nearest = closest(name, names);
  const isNear = distance(name.toLowerCase(), nearest.toLowerCase()) <= Math.max(1, Math.floor(name.length / 2));
  return isNear ? nearest : undefined;
}

/** Fields with keys for servers. */
const SECRET = new Set<PropertyKey>(['apiKey', 'headers', 'env']);

/** A value as text for an error message, without keys for servers. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'function') return 'a function';
  const text = plain(value) ?? writtenValue(value);
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}

/** The text of a value for which JSON has no text, or another one. */
function plain(value: unknown): string | undefined {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol' || (typeof value === 'number' && !Number.isFinite(value))) return String(value);
  return undefined;
}

function writtenValue(value: unknown): string {
  try {
    return JSON.stringify(value, (key, part) => (SECRET.has(key) ? '[secret]' : (plain(part) ?? part))) ?? 'nothing';
  } catch {
    return 'an object that cannot be written'; // it contains itself, or one of its fields throws
  }
}

/** Validates `value` and fills in defaults. @throws RecipeError with the dotted path, prefixed by `at` */
export function parseAt<S extends z.ZodType>(schema: S, value: unknown, at: Path = []): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw explained(result.error.issues, schema, value, at);
}

function explained(issues: readonly z.core.$ZodIssue[], schema: z.ZodType, value: unknown, at: Path): RecipeError {
  const named = issues.slice(0, MOST_FAULTS).map((issue) => explain(issue, schema, value));
  return faultsError(named, at, issues.length - named.length);
}

/** The first faults of a value on one line, in the words of `parseAt`. Undefined if it fits. */
export function faultsText(schema: z.ZodType, value: unknown, most = MOST_FAULTS): string | undefined {
  const issues = schema.safeParse(value).error?.issues;
  if (issues === undefined) return undefined;
  if (value === undefined) return 'expected an object, got nothing';
  const named = issues.slice(0, most).map((issue) => explain(issue, schema, value));
  return issuesText(named, issues.length);
}

/** Requires that a schema has all keys of `value`; other faults do not count. @throws RecipeError as `parseAt` does */
export function requireKnownKeys(schema: z.ZodType, value: unknown): void {
  const unknown = schema.safeParse(value).error?.issues.filter(({ code }) => code === 'unrecognized_keys') ?? [];
  if (unknown.length > 0) throw explained(unknown, schema, value, []);
}

/** One error for all faults of a value: the first with its path in front, the others a line each. */
export function faultsError([first, ...others]: readonly Explanation[], at: Path, unnamed = 0): RecipeError {
  if (first === undefined) return new RecipeError('is not valid', dotted(at));
  const rest = others.map(({ path, message }) => `\n  ${dotted([...at, ...path])}: ${message}`).join('');
  const more = unnamed === 0 ? '' : `\n  and ${unnamed} more`;
  return new RecipeError(first.message + rest + more, dotted([...at, ...first.path]));
}

const dotted = (path: Path) => path.map(String).join('.');

interface Explanation {
  readonly path: Path;
  readonly message: string;
}

/** The beginnings of zod's own messages. A message of the schema's author says more. */
const OF_ZOD = /^(?:Invalid|Too (?:small|big)|Unrecognized)/;

/** The place and the words of one fault of `root`. */
function explain(issue: z.core.$ZodIssue, schema: z.ZodType, root: unknown): Explanation {
  const { path } = issue;
  const value = valueAt(root, path);
  const got = value !== undefined && path.some((key) => SECRET.has(key)) ? '[secret]' : value;
  const say = (message: string): Explanation => ({ path, message });
  if (issue.code !== 'custom' && !OF_ZOD.test(issue.message)) return say(`${issue.message}, got ${shown(got)}`);
  switch (issue.code) {
    case 'unrecognized_keys': {
      const key = issue.keys[0] ?? '';
      return { path: [...path, key], message: unknownName(key, path, knownKeys(schema, root, path)) };
    }
    case 'invalid_type': {
      const expected = expectedType(issue.expected, unionTypes(schemaAt(schema, root, path)), path, got);
      return say(got === undefined ? `is required: ${expected}` : wrong(expected, got));
    }
    case 'too_small':
      return say(wrong(bound(issue, '>', issue.minimum), got));
    case 'too_big':
      return say(wrong(bound(issue, '<', issue.maximum), got));
    case 'invalid_value':
      return say(wrongChoice(issue.values.map(String), got));
    case 'invalid_union': {
      const { discriminator } = issue as { discriminator?: string };
      if (discriminator === undefined) return say(issue.message);
      const choices = unionTypes(schemaAt(schema, root, path.slice(0, -1)));
      if (got === undefined) return say(`is required: one of ${choices.join(', ')}`);
      const isExtensible =
        path.length === 2 && typeof got === 'string' && ['advantage', 'loss', 'backend'].includes(String(path[0]));
      return say(`${wrongChoice(choices, got)}${isExtensible ? ' A type of your own must stand in `use`' : ''}`);
    }
    case 'invalid_format':
      if (issue.format !== 'regex') return say(`${issue.message}, got ${shown(got)}`);
      return say(wrong('a name of letters, digits, - and _', got));
    default:
      return say(issue.message);
  }
}

/** Says zod's own faults in the words of `parseAt`: for `safeParse(value, { error: inPlainWords })`. */
export const inPlainWords: z.core.$ZodErrorMap = (issue) => {
  const { code, input } = issue;
  const required = (expected: string, got: unknown) =>
    got === undefined ? `is required: expected ${expected}` : wrong(expected, got);
  switch (code) {
    case 'invalid_type':
      return required(article(issue.expected), input);
    case 'too_small':
      return wrong(bound(issue, '>', issue.minimum), input);
    case 'too_big':
      return wrong(bound(issue, '<', issue.maximum), input);
    case 'invalid_value':
      return required(choiceOf(issue.values.map(String)), input);
    case 'invalid_union': {
      const { discriminator, options } = issue as { discriminator?: string; options?: readonly unknown[] };
      if (discriminator === undefined || options === undefined) return undefined;
      return required(choiceOf(options.map(String)), isObject(input) ? input[discriminator] : input);
    }
    default:
      return undefined;
  }
};

function unknownName(name: string, path: Path, names: readonly string[]): string {
  const section = path.length === 1 ? path[0] : undefined;
  if (section === 'agents' || section === 'assign') return `the team has no agent '${name}'${suggestion(name, names)}`;
  if (section === 'policies') return `no agent is assigned to a policy '${name}'${suggestion(name, names)}`;
  return `unknown key '${name}'${suggestion(name, names)}`;
}

const wrong = (expected: string, got: unknown) => `expected ${expected}, got ${shown(got)}`;

function wrongChoice(choices: readonly string[], got: unknown): string {
  const hint = typeof got === 'string' && choices.length > 1 ? `; did you mean '${closest(got, choices)}'?` : '';
  return `${wrong(choiceOf(choices), got)}${hint}`;
}

const choiceOf = (choices: readonly string[]) =>
  choices.length === 1 ? `'${choices[0]}'` : `one of ${choices.join(', ')}`;

/** The type in words. A text in the place of an object is often the `type` of the object, or the name of a policy. */
function expectedType(type: string, types: readonly string[], path: Path, got: unknown): string {
  if (path.length === 2 && path[0] === 'assign') return 'the name of a policy, or frozen(...)';
  return typeof got === 'string' && types.includes(got) ? `{ type: '${got}' }` : article(type);
}

function article(type: string): string {
  if (type === 'int') return 'an integer';
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
}

const BOUNDED: Readonly<Record<string, string>> = {
  string: 'a text of length',
  array: 'a list of length',
  set: 'a set of size',
  int: 'an integer',
};

function bound(
  {
    origin,
    inclusive,
    exact,
  }: Pick<z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig, 'origin' | 'inclusive' | 'exact'>,
  sign: '<' | '>',
  limit: number | bigint,
): string {
  if (origin === 'string' && sign === '>' && limit === 1) return 'a text that is not empty';
  return `${BOUNDED[origin] ?? 'a number'} ${exact ? '' : `${sign}${inclusive === false ? '' : '='} `}${limit}`;
}

function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const key of path) value = (value as Record<PropertyKey, unknown> | undefined | null)?.[key];
  return value;
}

/** The schema without its transformations and its optional, default and readonly wrappers. */
function bare(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodPipe) return bare(schema.def.in);
  const wrapped =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodReadonly;
  return wrapped ? bare(schema.def.innerType) : schema;
}

/**
 * The schema of the value at `path`. In a union it is the schema of the member that the value's discriminator names.
 */
function schemaAt(schema: z.core.$ZodType, root: unknown, path: Path): z.core.$ZodType | undefined {
  let current: z.core.$ZodType | undefined = bare(schema);
  let value = root;
  for (const key of path) {
    if (current instanceof z.ZodDiscriminatedUnion) current = memberFor(current, value);
    if (!(current instanceof z.ZodObject)) return undefined;
    const next: z.core.$ZodType | undefined = current.shape[String(key)];
    current = next && bare(next);
    value = valueAt(value, [key]);
  }
  return current;
}

function memberFor(union: z.ZodDiscriminatedUnion, value: unknown): z.ZodObject | undefined {
  const type = valueAt(value, ['type']);
  return members(union).find((member) => typesOf(member).includes(String(type)));
}

const members = (union: z.ZodDiscriminatedUnion) =>
  union.options.filter((member): member is z.ZodObject => member instanceof z.ZodObject);

function typesOf(member: z.ZodObject): string[] {
  const type = member.shape.type && bare(member.shape.type);
  return type instanceof z.ZodLiteral ? [...type.values].map(String) : [];
}

function unionTypes(schema: z.core.$ZodType | undefined): string[] {
  return schema instanceof z.ZodDiscriminatedUnion ? members(schema).flatMap(typesOf) : [];
}

function knownKeys(schema: z.ZodType, root: unknown, path: Path): string[] {
  const atPath = schemaAt(schema, root, path);
  const object = atPath instanceof z.ZodDiscriminatedUnion ? memberFor(atPath, valueAt(root, path)) : atPath;
  return object instanceof z.ZodObject ? Object.keys(object.shape) : [];
}
