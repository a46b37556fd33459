import { RecipeError, TaskError } from '@drmas/engine/errors';
import { fittedSet, type Task, type TaskSet, type TaskSource } from '@drmas/engine/nouns';

/** The metadata field with the name of a task's benchmark. */
export const BENCHMARK = 'benchmark';

/**
 * Joins several sources into one, one benchmark after another. A task's id begins with the name of its benchmark, and
 * its metadata hold the name too. The settings are the benchmarks' settings, by name.
 */
export function benchmarks(sources: Readonly<Record<string, TaskSource>>): TaskSource {
  const entries = Object.entries(sources);
  const teachers = entries.flatMap(([, source]) => (source.trace === undefined ? [] : [source]));
  return {
    name: entries.map(([name]) => name).join(' + '),
    settings: Object.fromEntries(entries.map(([name, { settings }]) => [name, { ...settings }])),
    configure: (settings) =>
      benchmarks(
        Object.fromEntries(entries.map(([name, source]) => [name, reconfigured(name, source, settings[name])])),
      ),
    async load(split, schema, options) {
      const parts = await Promise.all(
        entries.map(async ([name, source]) => named(name, await source.load(split, schema, options))),
      );
      return joined(parts);
    },
    ...tracesOf(teachers),
  };
}

/** The demonstrations of sources that have some, each as often as the others. */
function tracesOf(sources: readonly TaskSource[]): Pick<TaskSource, 'trace' | 'traceKey'> {
  const [first, ...others] = sources.map((source) => source.trace?.bind(source)).filter((trace) => trace !== undefined);
  if (first === undefined) return {};
  const trace: TaskSource['trace'] = (random, split) => random.pick([first, ...others])(random, split);
  return { trace: others.length === 0 ? first : trace, ...traceKeyOf(sources) };
}

/** A source with its settings changed, if it has settings that can change. @throws RecipeError naming the source */
export function reconfigured(name: string, source: TaskSource, settings: unknown): TaskSource {
  if (JSON.stringify(settings) === JSON.stringify({ ...source.settings })) return source;
  if (typeof settings !== 'object' || settings === null || source.configure === undefined)
    throw new RecipeError('cannot be replaced from outside; you can only change its settings', name);
  return source.configure({ ...settings });
}

export function named(benchmark: string, set: TaskSet): TaskSet {
  const at = (index: number): Task => {
    const { id, metadata, ...task } = set.at(index);
    return { ...task, id: `${benchmark}/${id}`, metadata: { ...metadata, [BENCHMARK]: benchmark } };
  };
  const { fitted } = set;
  return {
    ...set,
    name: benchmark,
    at,
    ...(fitted && { fitted: (tokensOf: (question: string) => number) => named(benchmark, fitted(tokensOf)) }),
  };
}

/** The key of the demonstrations of several sources. Empty if none has a key. */
export function traceKeyOf(sources: readonly TaskSource[]): Pick<TaskSource, 'traceKey'> {
  if (sources.every((source) => source.traceKey === undefined)) return {};
  return { traceKey: () => JSON.stringify(sources.map((source) => source.traceKey?.() ?? '')) };
}

export function originsOf(parts: readonly TaskSet[]): Pick<TaskSet, 'origins'> {
  const origins = parts.flatMap((part) => part.origins ?? []);
  return origins.length === 0 ? {} : { origins };
}

function joined(parts: readonly TaskSet[]): TaskSet {
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  const at = (index: number): Task => {
    let rest = index;
    for (const part of parts) {
      if (rest < part.size) return part.at(rest);
      rest -= part.size;
    }
    throw new TaskError(`there is no task ${index} among ${size}`);
  };
  const warnings = parts.flatMap((part) => part.warnings ?? []);
  const name = parts.map((part) => part.name).join(' + ');
  return {
    name,
    size,
    warnings,
    ...originsOf(parts),
    parts,
    at,
    fitted: (tokensOf) => joined(parts.map((part) => fittedSet(part, tokensOf))),
  };
}
