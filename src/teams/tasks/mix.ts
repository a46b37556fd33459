import { isObject, RecipeError } from '@drmas/engine/errors';
import { RandomStream } from '@drmas/engine/math';
import { fittedSet, GENERATED_INDICES, type Task, type TaskSet, type TaskSource } from '@drmas/engine/nouns';
import { named, originsOf, reconfigured, traceKeyOf } from './benchmarks.js';

const WEIGHTS = 'weights';

/**
 * Mixes sources: drmas draws the source of each task, and of each demonstration of the warm start, by weight. The draw
 * depends only on the run's seed, so a resumed run continues with the same tasks. A mixture has no end: tasks of files
 * repeat. A task's id begins with the name of its source, and its metadata hold the name as `benchmark`. Evaluations
 * take the first tasks of each source, and steps and evaluations report measures of each.
 *
 * @param sources By name, or a list; listed sources use their own names, numbered if two are equal
 * @param weights One for each source, in any unit; equal by default
 * @throws RecipeError naming the weight or source that is wrong
 *
 * @example
 * ```ts
 * import { arithmetic, mix } from 'drmas';
 *
 * const easy = arithmetic({ operations: [1, 2] });
 * const tasks = mix({ easy, hard: arithmetic({ operations: [4, 6] }) }, [1, 3]);
 * ```
 */
export function mix(
  sources: readonly TaskSource[] | Readonly<Record<string, TaskSource>>,
  weights?: readonly number[],
): TaskSource {
  const entries = Array.isArray(sources) ? numbered(sources) : Object.entries(sources);
  const shares = sharesOf(entries, weights ?? entries.map(() => 1));
  const teachers = entries.flatMap(([, source], i) => {
    const share = shares[i] ?? 0;
    return source.trace === undefined || share === 0 ? [] : [{ trace: source.trace.bind(source), share }];
  });
  return {
    name: entries.map(([name]) => name).join(' + '),
    settings: {
      ...Object.fromEntries(entries.map(([name, { settings }]) => [name, { ...settings }])),
      [WEIGHTS]: weights ?? entries.map(() => 1),
    },
    configure: ({ weights: changed, ...settings }) =>
      mix(
        Object.fromEntries(entries.map(([name, source]) => [name, reconfigured(name, source, settings[name])])),
        changed as readonly number[],
      ),
    async load(split, schema, options) {
      const parts = await Promise.all(
        entries.map(async ([name, source]) => named(name, await source.load(split, schema, options))),
      );
      return mixed(parts, shares);
    },
    ...(teachers.length > 0 && {
      trace: (random, split) => {
        const shares = teachers.map(({ share }) => share);
        return (teachers[drawn(random, shares)] as (typeof teachers)[number]).trace(random, split);
      },
    }),
    ...traceKeyOf(entries.map(([, source]) => source)),
  };
}

function mixed(parts: readonly TaskSet[], shares: readonly number[]): TaskSet {
  const at = (index: number): Task => {
    const random = new RandomStream('mixture', index);
    const { size, at } = parts[drawn(random, shares)] as TaskSet;
    return at(Math.floor(random.uniform() * (Number.isFinite(size) ? size : GENERATED_INDICES)));
  };
  return {
    name: parts.map(({ name }) => name).join(' + '),
    size: Number.POSITIVE_INFINITY,
    warnings: parts.flatMap((part) => part.warnings ?? []),
    ...originsOf(parts),
    parts,
    at,
    fitted: (tokensOf) =>
      mixed(
        parts.map((part) => fittedSet(part, tokensOf)),
        shares,
      ),
  };
}

type NamedSources = readonly (readonly [name: string, source: TaskSource])[];

function numbered(sources: readonly TaskSource[]): NamedSources {
  const own = new Set(sources.map(({ name }) => name));
  const taken = new Set<string>();
  return sources.map((source) => {
    let name = source.name;
    // A numbered name is no other source's own.
    for (let number = 2; taken.has(name) || (name !== source.name && own.has(name)); number++)
      name = `${source.name}-${number}`;
    taken.add(name);
    return [name, source];
  });
}

/** @throws RecipeError for weights that are no weights of these sources */
function sharesOf(entries: NamedSources, weights: unknown): number[] {
  if (entries.length === 0) throw new RecipeError('mix: expected at least one source');
  if (entries.some(([name]) => name === WEIGHTS))
    throw new RecipeError('is reserved, expected another name for the source', WEIGHTS);
  const odd = entries.find(([, source]) => !isObject(source) || typeof source.load !== 'function');
  if (odd !== undefined) throw new RecipeError('expected a source of tasks', odd[0]);
  const wrong = `expected ${entries.length} numbers >= 0, not all 0`;
  if (!Array.isArray(weights) || weights.length !== entries.length) throw new RecipeError(wrong, WEIGHTS);
  const sum = weights.reduce<number>((total, weight) => total + weight, 0);
  if (!(sum > 0 && Number.isFinite(sum) && weights.every((weight) => typeof weight === 'number' && weight >= 0)))
    throw new RecipeError(`${wrong}, got ${JSON.stringify(weights)}`, WEIGHTS);
  return weights.map((weight) => weight / sum);
}

/** Draws a position in proportion to the shares; one whose share is 0 is never drawn. */
function drawn(random: RandomStream, shares: readonly number[]): number {
  let rest = random.uniform() * shares.reduce((sum, share) => sum + share, 0);
  for (const [position, share] of shares.entries()) {
    if (rest < share) return position;
    rest -= share;
  }
  return shares.findLastIndex((share) => share > 0); // rounding can leave a remainder
}
