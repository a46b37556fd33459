/** `--set a.b.c=value`: changes to single leaves of a recipe. */
import { backendKeyVariables } from '../backends/registry.js';
import { RecipeError } from '../core/errors.js';
import { shown } from './explain.js';

export interface Override {
  readonly path: readonly [string, ...string[]];
  readonly value: unknown;
}

export type Plain = Record<string, unknown>;

export function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads `a.b.c=value`: the value as JSON where it is JSON, else as text. @throws RecipeError */
export function parseOverride(text: string): Override {
  const at = text.indexOf('=');
  const path = text.slice(0, Math.max(at, 0)).trim().split('.');
  const [first, ...rest] = path;
  if (first === undefined || path.some((key) => key === '' || key === '__proto__')) {
    throw new RecipeError(`expected --set path.to.key=value, got ${shown(text)}`);
  }
  const value = parseValue(text.slice(at + 1));
  if (path.at(-1) === 'apiKey' || (isPlain(value) && 'apiKey' in value))
    throw new RecipeError(
      `overrides are kept in recipe.json; set ${first === 'backend' ? backendKeyVariables.join(' or ') : 'OPENAI_API_KEY'} in the environment instead`,
      path.join('.'),
    );
  return { path: [first, ...rest], value };
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // not JSON: the text itself
  }
}

/**
 * The tree with the overrides applied; the tree itself is left alone. A changed `type` drops its siblings, which then get
 * the defaults of the new type, so types are set before anything else. `null` removes a value, whose default then applies.
 * @throws RecipeError when a path leads through something that has no keys
 */
export function applyOverrides(tree: Plain, overrides: readonly Override[]): Plain {
  const result = structuredClone(tree);
  const setsType = (override: Override) => (override.path.at(-1) === 'type' ? 0 : 1);
  for (const override of [...overrides].sort((a, b) => setsType(a) - setsType(b))) setLeaf(result, override);
  return result;
}

function setLeaf(tree: Plain, { path, value }: Override): void {
  const last = path[path.length - 1] ?? '';
  let parent = tree;
  for (const [depth, key] of path.slice(0, -1).entries()) {
    const next = parent[key] ?? {};
    if (!isPlain(next)) {
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
