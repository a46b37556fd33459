/** ablation.json: the request of an ablation, so that it can go on, and its result. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, RunError } from '../core/errors.js';
import { nodeFiles } from '../platform/node-files.js';
import { contentHash } from './files/content-hash.js';

/** The file that makes a directory an ablation. */
export const ABLATION = 'ablation.json';

const recordSchema = z.object({
  version: z.literal(1),
  recipe: z.object({
    /** A shipped recipe's name, or the absolute path of a recipe file. */
    source: z.string(),
    codeHash: z.string(),
    /** Overrides of every run. */
    overrides: z.array(z.string()).readonly(),
  }),
  vary: z.array(z.object({ key: z.string(), values: z.array(z.string()).readonly() })).readonly(),
  /** Variants that are more than values of one leaf each. */
  bundles: z
    .array(z.object({ name: z.string(), overrides: z.array(z.string()).readonly() }))
    .readonly()
    .optional(),
  /** Named parts of the reward between which the variants are drawn. */
  parts: z.array(z.string()).min(2).readonly().optional(),
  seeds: z.int().min(1),
  /** The seed of the first pair, where it is not 1. */
  firstSeed: z.int().min(0).optional(),
  warmStartSeed: z.int().min(0).optional(),
  baseline: z.string(),
  /** The summary, once all runs have ended, for people and programs. It is computed anew from the runs each time. */
  result: z.unknown().optional(),
});

export type AblationRecord = z.output<typeof recordSchema>;

/** One of the recipes that an ablation compares. */
export interface Variant {
  /** The name of its bundle, its values, `grpo`, or `grpo, 8` where two leaves vary: what tells it from the others. */
  readonly name: string;
  readonly overrides: readonly string[];
}

/** Every combination of a bundle, where there are any, and a value of each varied leaf; the first of each first. */
export function variantsOf({ vary, bundles = [] }: Pick<AblationRecord, 'vary' | 'bundles'>): Variant[] {
  const choices = vary.map(({ key, values }) => values.map((name) => ({ name, overrides: [`${key}=${name}`] })));
  return [...(bundles.length === 0 ? [] : [bundles]), ...choices].reduce<Variant[]>(
    (all, choice) =>
      all.flatMap((first) =>
        choice.map(({ name, overrides }) => ({
          name: first.name === '' ? name : `${first.name}, ${name}`,
          overrides: [...first.overrides, ...overrides],
        })),
      ),
    [{ name: '', overrides: [] }],
  );
}

/** The record of an ablation's directory; undefined where there is none. @throws RunError when it cannot be used */
export async function readAblation(directory: string): Promise<AblationRecord | undefined> {
  const path = join(directory, ABLATION);
  if (!existsSync(path)) return undefined;
  try {
    return recordSchema.parse(JSON.parse(await nodeFiles.readText(path)));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error);
    throw new RunError(`${path} is not the record of an ablation: ${why}`);
  }
}

/** Writes the record of an ablation's directory. @throws RunError when it cannot be written */
export async function writeAblation(directory: string, record: AblationRecord): Promise<void> {
  try {
    await nodeFiles.makeDirectory(directory);
    await nodeFiles.write(join(directory, ABLATION), `${JSON.stringify(record, null, 2)}\n`);
  } catch (error) {
    throw new RunError(`the directory ${directory} cannot be written: ${messageOf(error)}`);
  }
}

/**
 * Requires a directory in which an ablation may go on: a new one, an empty one, or that of the same comparison. Values
 * and seeds may have grown or shrunk, for every run stands for itself.
 * @throws RunError saying what differs
 */
export async function requireSameAblation(directory: string, record: AblationRecord): Promise<void> {
  const before = await readAblation(directory);
  if (before === undefined) {
    const names = await nodeFiles.list(directory).catch(() => ['']); // it is a file
    if (names.length > 0)
      throw new RunError(`${directory} exists and is no ablation; choose another directory with --run`);
    return;
  }
  const parts = {
    'another recipe': ({ recipe }: AblationRecord) => recipe.source,
    'other code of the recipe': ({ recipe }: AblationRecord) => recipe.codeHash,
    'other --set': ({ recipe }: AblationRecord) => recipe.overrides,
    'another --warm-start-seed': ({ warmStartSeed }: AblationRecord) => warmStartSeed ?? null,
  };
  const different = Object.entries(parts).find(([, part]) => contentHash(part(before)) !== contentHash(part(record)));
  if (different !== undefined)
    throw new RunError(`${directory} was begun with ${different[0]}; choose another directory with --run`);
}
