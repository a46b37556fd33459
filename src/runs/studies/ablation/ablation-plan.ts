/** The plan of an ablation: variants of a recipe, each with the same pairs of seeds. */
import { RecipeError } from '@drmas/engine/errors';
import { parseOverride } from '../../../method/recipe.js';
import { type AblationRecord, countRuns, MOST_RUNS, type Variant, variantsOf } from '../../../method/store.js';

/** The variants to compare: values of leaves, and named bundles of overrides. Values are written as in overrides. */
export interface Compared extends Pick<AblationRecord, 'vary'> {
  readonly bundles: readonly Variant[];
}

export interface ComparedOptions {
  /**
   * The values to compare: `{ 'advantage.type': ['grpo', 'drmas'] }`, or as on the command line. Several keys make a
   * grid.
   */
  readonly vary?: Readonly<Record<string, readonly unknown[]>> | readonly string[];
  /**
   * Named bundles of overrides that vary together: `{ long: ['warmStart.steps=800', 'training.steps=20'] }`, or as on
   * the command line. With `vary` each bundle is combined with each value.
   */
  readonly variants?: Readonly<Record<string, readonly string[]>> | readonly string[];
}

/** A run of one variant with the seed of one pair. Runs of one pair differ only in the variant. */
export interface PlannedRun {
  /** The name of its directory. */
  readonly name: string;
  readonly variant: string;
  readonly seed: number;
  readonly overrides: readonly string[];
}

export interface PlanOptions extends Compared {
  readonly seeds: number;
  /** The seed of the first pair. A pair's warm start has the same seed unless `warmStartSeed` is given. */
  readonly firstSeed: number;
  readonly warmStartSeed?: number | undefined;
  readonly set: readonly string[];
  readonly hasWarmStart: (overrides: readonly string[]) => boolean;
}

/** Parses the options, which are texts or values. @throws RecipeError */
export function comparedOf({ vary = [], variants = [] }: ComparedOptions): Compared {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null'));
  return {
    vary: isList(vary)
      ? vary.map(parseVariation)
      : Object.entries(vary).map(([key, values]) => ({ key, values: values.map(textOf) })),
    bundles: isList(variants)
      ? variants.map(parseBundle)
      : Object.entries(variants).map(([name, overrides]) => ({ name, overrides })),
  };
}

const isList = <T>(words: Readonly<Record<string, T>> | readonly string[]): words is readonly string[] =>
  Array.isArray(words);

/**
 * Reads `advantage.type=grpo,drmas`. Commas inside brackets, braces and quotes belong to a value.
 * @throws RecipeError
 */
export function parseVariation(text: string): Compared['vary'][number] {
  const at = text.indexOf('=');
  const key = text.slice(0, Math.max(0, at)).trim();
  const values = splitValues(text.slice(at + 1));
  if (key === '' || values.some((value) => value === ''))
    throw new RecipeError(`expected --vary path.to.key=value,value, got '${text}'`);
  return { key, values };
}

/**
 * Parses `long=warmStart.steps=800,training.steps=20`: a name and its overrides. A name alone is the unchanged recipe.
 * @throws RecipeError
 */
export function parseBundle(text: string): Variant {
  const at = text.indexOf('=');
  const name = (at < 0 ? text : text.slice(0, at)).trim();
  const overrides = at < 0 ? [] : splitValues(text.slice(at + 1));
  if (name === '' || overrides.some((override) => !/^[^=]+=/.test(override)))
    throw new RecipeError(`expected --variant name=key=value,key=value, got '${text}'`);
  return { name, overrides };
}

/** Splits a text at its outermost commas. */
function splitValues(text: string): string[] {
  const values: string[] = [];
  let [depth, quoted, value] = [0, false, ''];
  for (const [i, letter] of [...text].entries()) {
    if (letter === '"' && text[i - 1] !== '\\') quoted = !quoted;
    if (!quoted && (letter === '[' || letter === '{')) depth++;
    if (!quoted && (letter === ']' || letter === '}')) depth--;
    if (letter === ',' && depth === 0 && !quoted) {
      values.push(value.trim());
      value = '';
    } else value += letter;
  }
  return [...values, value.trim()];
}

/** @throws RecipeError, before a run is listed */
function requireFew(options: Parameters<typeof countRuns>[0]): void {
  const runs = countRuns(options);
  if (runs > MOST_RUNS) throw new RecipeError(`expected at most ${MOST_RUNS} runs, got ${runs}`, 'ablation');
}

/** The variants of a comparison. @throws RecipeError if two have the same name, or if there is nothing to compare */
export function comparedVariants({ vary, bundles }: Compared): Variant[] {
  const keyOf = (override: string) => parseOverride(override).path.join('.');
  const varied = vary.map(({ key, values }) => keyOf(`${key}=${values[0] ?? ''}`));
  const bundled = bundles.flatMap(({ overrides }) => overrides.map(keyOf));
  for (const name of [...varied, ...bundled])
    if (name === 'seed' || name === 'warmStart.seed')
      throw new RecipeError('cannot vary: every pair has a seed of its own (--seeds)', name);
  for (const [i, key] of varied.entries()) {
    const { values } = vary[i] as Compared['vary'][number];
    if (varied.indexOf(key) !== i || bundled.includes(key)) throw new RecipeError('varies twice', key);
    if (new Set(values).size < values.length) throw new RecipeError(`has a value twice: ${values.join(', ')}`, key);
  }
  requireFew({ vary, bundles });
  const names = new Set<string>();
  const twice = bundles.find(({ name }) => names.has(name) || !names.add(name));
  if (twice !== undefined) throw new RecipeError('is the name of two variants', twice.name);
  const variants = variantsOf({ vary, bundles });
  if (variants.length < 2)
    throw new RecipeError(
      'expected at least two values to compare: --vary path.to.key=one,other, or --variant for each bundle of values',
    );
  return variants;
}

/** The runs, pair by pair, so that an interrupted ablation has complete pairs. @throws RecipeError */
export function plannedRuns(options: PlanOptions): PlannedRun[] {
  const { seeds, firstSeed, warmStartSeed, set, hasWarmStart } = options;
  for (const text of set) {
    const key = parseOverride(text).path.join('.');
    if (key === 'seed') throw new RecipeError('every pair has a seed of its own (--seeds)', key);
    if (key === 'warmStart.seed')
      throw new RecipeError('every pair has a warm start of its own; --warm-start-seed gives all the same', key);
  }
  if (!Number.isSafeInteger(seeds) || seeds < 1) throw new RecipeError(`expected at least 1, got ${seeds}`, 'seeds');
  if (!Number.isSafeInteger(firstSeed) || firstSeed < 0)
    throw new RecipeError(`expected at least 0, got ${firstSeed}`, 'firstSeed');
  const variants = comparedVariants(options);
  requireFew(options);
  const names = directoryNames(variants);
  const common = variants.map(({ overrides }) => [...set, ...overrides]);
  const seeded = common.map(hasWarmStart);
  return Array.from({ length: seeds }, (_, i) => firstSeed + i).flatMap((seed) =>
    variants.map(({ name }, v) => ({
      name: `${names[v]}-seed-${seed}`,
      variant: name,
      seed,
      overrides: [
        ...(common[v] ?? []),
        `seed=${seed}`,
        ...(seeded[v] === true ? [`warmStart.seed=${warmStartSeed ?? seed}`] : []),
      ],
    })),
  );
}

/** The most characters of a variant's part of a directory's name. */
const LONGEST_NAME = 100;

/**
 * The variants' names as directory names, in which case decides nothing. If two variants would get the same name, they
 * get numbers.
 */
function directoryNames(variants: readonly Variant[]): string[] {
  const plain = variants.map(({ name }) =>
    name
      .replaceAll(/[^A-Za-z0-9._+]+/g, '-')
      .slice(0, LONGEST_NAME)
      .replaceAll(/^-+|-+$/g, ''),
  );
  const key = (name: string) => name.toLowerCase();
  const times = new Map<string, number>();
  for (const name of plain) times.set(key(name), (times.get(key(name)) ?? 0) + 1);
  const isAlone = (name: string) => name !== '' && times.get(key(name)) === 1;
  const taken = new Set(plain.filter(isAlone).map(key));
  return plain.map((name, i) => {
    if (isAlone(name)) return name;
    let numbered = `${name || 'variant'}-${i + 1}`;
    // A numbered name may be another variant's own.
    for (let more = 2; taken.has(key(numbered)); more++) numbered = `${name || 'variant'}-${i + 1}-${more}`;
    taken.add(key(numbered));
    return numbered;
  });
}
