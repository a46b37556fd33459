/** The overrides of `--set a.b.c=value`: changes to single leaves of a recipe. */

import { DEEPEST, isObject, messageOf, nestsTooDeep, RecipeError, shown } from '@drmas/engine/errors';

export interface Override {
  readonly path: readonly [string, ...string[]];
  readonly value: unknown;
}

/** The longest path in characters. */
const LONGEST_PATH = 300;

export type Plain = Record<string, unknown>;

/**
 * Parses `a.b.c=value`. The value is JSON if it parses as JSON, a number if it is one
 * without a digit before its point, else text.
 * @param keys The environment variables that hold keys of servers, for the message that refuses a key
 * @throws RecipeError if it is malformed
 */
export function parseOverride(text: string, keys: readonly string[] = []): Override {
  const at = text.indexOf('=');
  const path = text.slice(0, Math.max(at, 0)).trim().split('.');
  const [first, ...rest] = path;
  if (first === undefined || at > LONGEST_PATH || path.some((key) => key === '' || key === '__proto__')) {
    throw new RecipeError(`expected --set path.to.key=value, got ${shown(text)}`);
  }
  const value = parseValue(text.slice(at + 1));
  if (path.includes('apiKey') || holdsKey(value))
    throw new RecipeError(
      `overrides are kept in recipe.json; set ${keyVariables(path, keys)} in the environment instead`,
      path.join('.'),
    );
  return { path: [first, ...rest], value: rest.length === 0 && isNone(first, value) ? null : value };
}

const OPTIONAL = new Set(['warmStart', 'gateway', 'rollout', 'sampler']);

/** Whether a value says that a section is left out: `warmStart=none`, also `false` and `off`. */
const isNone = (section: string, value: unknown): boolean =>
  OPTIONAL.has(section) && (value === false || value === 'none' || value === 'off');

/** The environment variables that may hold the key which a path names. */
const keyVariables = (path: readonly string[], keys: readonly string[]): string =>
  path.includes('backend') || path.includes('sampler') ? keys.join(' or ') || 'its key' : 'OPENAI_API_KEY';

/** Whether the value contains a key of a server. A text that looks like JSON is searched as text. */
function holdsKey(value: unknown): boolean {
  if (typeof value === 'string') return /^\s*[[{].*\bapiKey\b/s.test(value);
  const waiting = [value];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    if ('apiKey' in next) return true;
    for (const child of Object.values(next)) if (child !== null) waiting.push(child);
  }
  return false;
}

/** A decimal without a digit before its point, such as `.003` or `-.5e-3`, which JSON does not have. */
const SHORT_DECIMAL = /^-?\.\d+(e[+-]?\d+)?$/i;

function parseValue(text: string): unknown {
  if (nestsTooDeep(text)) throw new RecipeError(`expected a value nested at most ${DEEPEST} deep`);
  if (SHORT_DECIMAL.test(text)) return Number(text);
  try {
    return JSON.parse(text);
  } catch {
    return text; // not JSON: the text itself
  }
}

/**
 * Applies overrides to a copy of the tree. A changed `type` removes its siblings, which then get the defaults of the
 * new type. So a type is set before its siblings, and after the sections around it. `null` removes a value, whose
 * default then applies.
 * @throws RecipeError if a path leads through a value without keys
 */
export function applyOverrides(tree: Plain, overrides: readonly Override[]): Plain {
  const result = copyOf(tree);
  for (const override of typesFirst(overrides)) setLeaf(result, override);
  return result;
}

/** The overrides in their order, except that each type moves to behind the last one that replaces its section. */
function typesFirst(overrides: readonly Override[]): Override[] {
  const ordered: Override[] = [];
  for (const override of overrides) {
    const section = sectionOf(override);
    const at = section === undefined ? ordered.length : 1 + ordered.findLastIndex((other) => replaces(other, section));
    ordered.splice(at, 0, override);
  }
  return ordered;
}

const sectionOf = ({ path }: Override): readonly string[] | undefined =>
  path.at(-1) === 'type' ? path.slice(0, -1) : undefined;

function replaces(other: Override, section: readonly string[]): boolean {
  const replaced = sectionOf(other) ?? other.path;
  return replaced.every((key, depth) => key === section[depth]);
}

export const removalsOfNothing = (tree: Plain, overrides: readonly Override[]): Override[] =>
  overrides.filter(({ path, value }) => {
    const at = path.reduce<unknown>((node, key) => (isObject(node) ? node[key] : undefined), tree);
    return value === null && at === undefined;
  });

/** @throws RecipeError if the tree cannot be copied: it contains itself, or values that are not plain data */
function copyOf(tree: Plain): Plain {
  try {
    return structuredClone(tree);
  } catch (error) {
    throw new RecipeError(`the settings are not plain data: ${messageOf(error)}`);
  }
}

function setLeaf(tree: Plain, { path, value }: Override): void {
  const last = path[path.length - 1] ?? '';
  let parent = tree;
  for (const [depth, key] of path.slice(0, -1).entries()) {
    const next = parent[key] ?? {};
    if (!isObject(next)) {
      throw new RecipeError(
        `is ${shown(next)} and has no key '${path[depth + 1]}'`,
        path.slice(0, depth + 1).join('.'),
      );
    }
    parent[key] = next;
    parent = next;
  }
  if (value === null) {
    delete parent[last];
    return;
  }
  if (last === 'type' && parent[last] !== value) for (const sibling of Object.keys(parent)) delete parent[sibling];
  parent[last] = value;
}
