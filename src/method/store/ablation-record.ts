/** ablation.json: the request of an ablation, so that it can resume, and its result. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { contentHash } from '@drmas/engine/disk';
import { messageOf, RunError } from '@drmas/engine/errors';
import { parseStored } from '@drmas/engine/events';
import { nodeFiles } from '@drmas/engine/platform';
import { z } from 'zod';
import { requireOwnFiles } from './run-lock.js';
import { ABLATION } from './run-path.js';

/** The most runs of an ablation. A record of somebody else can name more than memory holds. */
export const MOST_RUNS = 100_000;

/** The number of an ablation's runs, counted before they are listed. */
export function countRuns({ vary, bundles = [], seeds = 1 }: Partial<Pick<AblationRecord, 'seeds'>> & Grid): number {
  return vary.reduce((runs, { values }) => runs * values.length, seeds * Math.max(1, bundles.length));
}

const plainSchema = z.object({
  version: z.literal(1),
  recipe: z.object({
    /** A shipped recipe's name, or the absolute path of a recipe file. */
    source: z.string(),
    codeHash: z.string(),
    overrides: z.array(z.string()).readonly(),
  }),
  vary: z.array(z.object({ key: z.string(), values: z.array(z.string()).readonly() })).readonly(),
  /** Variants that set more than the varied leaves. */
  bundles: z
    .array(z.object({ name: z.string(), overrides: z.array(z.string()).readonly() }))
    .readonly()
    .optional(),
  /** The named parts of the reward that are the axes of the plot of variants. */
  parts: z.array(z.string()).min(2).readonly().optional(),
  seeds: z.int().min(1),
  /** The seed of the first pair. Absent if it is 1. */
  firstSeed: z.int().min(0).optional(),
  warmStartSeed: z.int().min(0).optional(),
  baseline: z.string(),
  /** The summary for people and programs, after all runs have ended. It is computed again from the runs each time. */
  result: z.unknown().optional(),
});

const recordSchema = plainSchema.refine((record) => countRuns(record) <= MOST_RUNS, `names over ${MOST_RUNS} runs`);

export type AblationRecord = z.output<typeof plainSchema>;

type Grid = Pick<AblationRecord, 'vary' | 'bundles'>;

export interface Variant {
  /** A name that distinguishes it from the others: its bundle, its values, `grpo`, or `grpo, 8` if two leaves vary. */
  readonly name: string;
  readonly overrides: readonly string[];
}

/**
 * Combines each bundle (if there are bundles) with each combination of the leaves' values. The first bundle comes
 * first.
 */
export function variantsOf({ vary, bundles = [] }: Grid): Variant[] {
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

/** The record of an ablation's directory. Undefined if there is none. @throws RunError if it cannot be used */
export async function readAblation(directory: string): Promise<AblationRecord | undefined> {
  const path = join(directory, ABLATION);
  requireOwnFiles(directory, [ABLATION]);
  if (!existsSync(path)) return undefined;
  const text = await nodeFiles.readText(path).catch((error: unknown) => {
    throw new RunError(`${path} cannot be read: ${messageOf(error)}`);
  });
  return parseStored(recordSchema, text, {
    path,
    what: 'the record of an ablation',
    fault: (message) => new RunError(message),
  });
}

/** Writes the record of an ablation's directory. @throws RunError if it cannot be written */
export async function writeAblation(directory: string, record: AblationRecord): Promise<void> {
  try {
    await nodeFiles.makeDirectory(directory);
    await nodeFiles.replace(join(directory, ABLATION), `${JSON.stringify(record, null, 2)}\n`);
  } catch (error) {
    throw new RunError(`the directory ${directory} cannot be written: ${messageOf(error)}`);
  }
}

/**
 * Requires a directory in which the ablation can start or resume: a new or empty directory, or a directory of the same
 * comparison. The lists of values and seeds may differ, because each run is independent.
 * @throws RunError with the difference
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
