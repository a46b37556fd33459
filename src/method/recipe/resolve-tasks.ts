/** Resolves the task sources of a recipe, with their overrides. */
import { isObject, RecipeError, shown, suggestion } from '../../base/errors.js';
import type { Split, TaskSource } from '../../base/nouns.js';
import { benchmarks } from '../../teams/tasks.js';
import type { RecipeInput } from './define.js';
import { applyOverrides, type Override } from './overrides.js';
import type { Recipe } from './recipe.js';

/**
 * The task sources of both splits.
 * @throws RecipeError if a value is not a task source, or if an override names a setting that the source does not have
 */
export function resolveTasks(tasks: RecipeInput['tasks'], overrides: readonly Override[]): Recipe['tasks'] {
  const one = isSource(tasks);
  const written: Partial<Record<Split, unknown>> = one
    ? { train: tasks, test: tasks }
    : { ...tasks, test: joined(tasks?.test) };
  for (const { path } of overrides) {
    if (path[1] !== 'train' && path[1] !== 'test') {
      throw new RecipeError(
        `unknown key '${path[1] ?? ''}'${suggestion(path[1] ?? '', ['train', 'test'])}`,
        path.join('.'),
      );
    }
  }
  const source = (split: Split): TaskSource => {
    const given = written[split];
    if (!isSource(given)) throw new RecipeError(`expected a task source, got ${shown(given)}`, `tasks.${split}`);
    // If one source serves both splits, overrides of `train` apply to `test` too. Overrides of `test` come after them.
    const inherited = one && split === 'test' ? overrides.filter(({ path }) => path[1] === 'train') : [];
    return configured(given, split, [...inherited, ...overrides.filter(({ path }) => path[1] === split)]);
  };
  return { train: source('train'), test: source('test') };
}

/** Joins several benchmarks by name into one source. */
function joined(test: unknown): unknown {
  if (isSource(test) || !isObject(test) || Object.keys(test).length === 0) return test;
  const sources = Object.entries(test).map(([name, source]) => {
    if (!isSource(source)) throw new RecipeError(`expected a task source, got ${shown(source)}`, `tasks.test.${name}`);
    return [name, source] as const;
  });
  return benchmarks(Object.fromEntries(sources));
}

function isSource(value: unknown): value is TaskSource {
  return isObject(value) && typeof value.load === 'function';
}

function configured(source: TaskSource, split: Split, overrides: readonly Override[]): TaskSource {
  if (overrides.length === 0) return source;
  const { settings } = source;
  const keys = Object.keys(settings ?? {});
  const inner = overrides.map(({ path, value }): Override => {
    const [key, ...rest] = path.slice(2);
    const at = `tasks.${split}`;
    if (key === undefined) throw new RecipeError('cannot be replaced from outside, only its settings can', at);
    if (!keys.includes(key)) throw new RecipeError(`unknown key '${key}'${suggestion(key, keys)}`, `${at}.${key}`);
    return { path: [key, ...rest], value };
  });
  if (settings === undefined || source.configure === undefined) return source;
  try {
    return source.configure(applyOverrides({ ...settings }, inner));
  } catch (error) {
    if (error instanceof RecipeError) throw new RecipeError(error.message, `tasks.${split}`);
    throw error;
  }
}
