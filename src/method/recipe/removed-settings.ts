/**
 * Settings of earlier versions that are gone. A recipe that sets one gets an error with the reason, and a stored run
 * whose recipe has one at the value that is now fixed still counts as the same recipe.
 */
import { isObject, RecipeError } from '@drmas/engine/errors';

interface RemovedSetting {
  /** The place in a recipe; `*` is any name. */
  readonly path: readonly string[];
  readonly reason: string;
  /** The value that drmas always has now; undefined if the setting was off by default. */
  readonly fixed?: unknown;
}

const timeout = { reason: 'a sampler gets 600 seconds for a reply', fixed: 600 };

const removed: readonly RemovedSetting[] = [
  {
    path: ['training', 'durationWeights'],
    reason: 'no measurement showed a use; an estimator of your own can weigh turns (`defineEstimator`)',
  },
  { path: ['sampler', 'timeoutSeconds'], ...timeout },
  { path: ['policies', '*', 'sampler', 'timeoutSeconds'], ...timeout },
];

function holders(tree: unknown, path: readonly string[], at: readonly string[] = []): [string, object][] {
  if (!isObject(tree)) return [];
  const [key = '', ...rest] = path;
  if (rest.length === 0) return Object.hasOwn(tree, key) ? [[[...at, key].join('.'), tree]] : [];
  const names = key === '*' ? Object.keys(tree) : [key];
  return names.flatMap((name) => holders(tree[name], rest, [...at, name]));
}

/** @throws RecipeError at the path of a removed setting, with the reason */
export function requireNoneRemoved(tree: unknown): void {
  for (const { path, reason } of removed)
    for (const [place] of holders(tree, path))
      throw new RecipeError(`drmas has no such setting any more: ${reason}; leave it out`, place);
}

export function withoutRemoved(resolved: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy = structuredClone(resolved) as Record<string, unknown>;
  for (const { path, fixed } of removed)
    for (const [, section] of holders(copy, path)) {
      const name = path.at(-1) as keyof typeof section;
      if (section[name] === fixed) delete section[name];
    }
  return copy;
}
