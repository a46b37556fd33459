/** The plan of an ablation: variants of a recipe, each with the same pairs of seeds. */
import { RecipeError } from '../../core/errors.js';
import { parseOverride } from '../../recipe/overrides.js';

/** The values of one leaf of the recipe, as an override writes them. */
export interface Variation {
  readonly key: string;
  readonly values: readonly string[];
}

/** A combination of values, one of every varied leaf. */
export interface Variant {
  /** The values, `grpo`, or `grpo, 8` where two leaves vary, which tell it from the other variants. */
  readonly name: string;
  readonly overrides: readonly string[];
}

/** A run of one variant with the seed of one pair. Runs of one pair differ in nothing but the variant. */
export interface PlannedRun {
  /** The name of its directory. */
  readonly name: string;
  readonly variant: string;
  readonly seed: number;
  readonly overrides: readonly string[];
}

export interface PlanOptions {
  readonly vary: readonly Variation[];
  /** Number of pairs. */
  readonly seeds: number;
  /** The seed of the first pair; a pair's warm start has the same seed unless `warmStartSeed` fixes it. */
  readonly firstSeed: number;
  readonly warmStartSeed?: number | undefined;
  /** Overrides of every run. */
  readonly set: readonly string[];
  /** Whether the recipe with these overrides has a warm start to seed. */
  readonly hasWarmStart: (overrides: readonly string[]) => boolean;
}

/**
 * Reads `advantage.type=grpo,drmas`. Commas inside brackets, braces and quotes belong to a value.
 * @throws RecipeError
 */
export function parseVariation(text: string): Variation {
  const at = text.indexOf('=');
  const key = text.slice(0, Math.max(0, at)).trim();
  const values = splitValues(text.slice(at + 1));
  if (key === '' || values.some((value) => value === ''))
    throw new RecipeError(`expected --vary path.to.key=value,value, got '${text}'`);
  return { key, values };
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

/** Every combination of the varied values, the first value of each leaf first. @throws RecipeError */
export function variantsOf(vary: readonly Variation[]): Variant[] {
  for (const { key, values } of vary) {
    const { path } = parseOverride(`${key}=${values[0] ?? ''}`);
    const name = path.join('.');
    if (name === 'seed' || name === 'warmStart.seed')
      throw new RecipeError('cannot vary: every pair has a seed of its own (--seeds)', name);
    if (vary.filter((other) => other.key === key).length > 1) throw new RecipeError('varies twice', key);
    if (new Set(values).size < values.length) throw new RecipeError(`has a value twice: ${values.join(', ')}`, key);
  }
  const variants = vary.reduce<Variant[]>(
    (all, { key, values }) =>
      all.flatMap(({ name, overrides }) =>
        values.map((value) => ({
          name: name === '' ? value : `${name}, ${value}`,
          overrides: [...overrides, `${key}=${value}`],
        })),
      ),
    [{ name: '', overrides: [] }],
  );
  if (variants.length < 2)
    throw new RecipeError('expected at least two values to compare: --vary path.to.key=one,other');
  return variants;
}

/** The runs, pair by pair, so that an ablation that is cut short has whole pairs. @throws RecipeError */
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
  const variants = variantsOf(options.vary);
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

/** The variants' names as a file system takes them. Two variants that would get the same one are numbered. */
function directoryNames(variants: readonly Variant[]): string[] {
  const plain = variants.map(({ name }) => name.replaceAll(/[^A-Za-z0-9._+]+/g, '-').replaceAll(/^-+|-+$/g, ''));
  return plain.map((name, i) =>
    name !== '' && plain.indexOf(name) === plain.lastIndexOf(name) ? name : `${name || 'variant'}-${i + 1}`,
  );
}
