import { faultsError, isObject, RecipeError, shown, suggestion } from '@drmas/engine/errors';
import type { Split, TaskSource } from '@drmas/engine/nouns';
import { benchmarks, listSource } from '../../teams/tasks.js';
import type { RecipeInput } from './define.js';
import { applyOverrides, type Override } from './overrides.js';
import type { Recipe } from './recipe.js';

/**
 * The task sources of both splits.
 * @throws RecipeError if a value is not a task source, or if an override names a setting that the source does not have
 */
export function resolveTasks(tasks: RecipeInput['tasks'], overrides: readonly Override[]): Recipe['tasks'] {
  const one = isSource(tasks) || isList(tasks);
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
    const given = sourceOf(written[split], one ? 'tasks' : `tasks.${split}`);
    // If one source serves both splits, overrides of `train` apply to `test` too. Overrides of `test` come after them.
    const inherited = one && split === 'test' ? overrides.filter(({ path }) => path[1] === 'train') : [];
    return configured(given, split, [...inherited, ...overrides.filter(({ path }) => path[1] === split)]);
  };
  const sources = { train: source('train'), test: source('test') };
  const stranger = one ? undefined : Object.keys(written).find((key) => !Object.hasOwn(sources, key));
  if (stranger !== undefined)
    throw new RecipeError(
      `unknown key '${stranger}'${suggestion(stranger, Object.keys(sources))}`,
      `tasks.${stranger}`,
    );
  return sources;
}

function joined(test: unknown): unknown {
  if (isSource(test) || isList(test) || !isObject(test) || Object.keys(test).length === 0) return test;
  const sources = Object.entries(test).map(([name, source]) => [name, sourceOf(source, `tasks.test.${name}`)] as const);
  return benchmarks(Object.fromEntries(sources));
}

/** A source as it is written, or as a list of tasks. @throws RecipeError naming the setting if it is neither */
function sourceOf(given: unknown, setting: string): TaskSource {
  if (isSource(given)) return given;
  if (isList(given)) return listSource(given, setting);
  throw new RecipeError(
    `expected a list of tasks or a source of them, such as file('tasks.jsonl'), got ${shown(given)}`,
    setting,
  );
}

const isList = (value: unknown): value is readonly object[] => Array.isArray(value);

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
    const faults = faultsOf(error);
    throw faults.length === 0 ? error : faultsError(faults, ['tasks', split]);
  }
}

/** The faults that a task source's own schema names in an error of zod's form, of any version; none for others. */
function faultsOf(error: unknown): Parameters<typeof faultsError>[0] {
  const issues: unknown = isObject(error) ? error.issues : undefined;
  if (!Array.isArray(issues)) return [];
  return issues
    .filter(isObject)
    .map(({ path, message }) => ({ path: Array.isArray(path) ? path : [], message: String(message) }));
}
