/** The results of the benchmark: JSON lines in research/results, one file a part, one line a cell. */
import { existsSync } from 'node:fs';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';

/** A cell is one family, one estimator and one seed. */
const cellSchema = z.strictObject({
  family: z.string(),
  /** The type, and the choices that differ from its defaults: `rloo,byAgent=true`. */
  estimator: z.string(),
  seed: z.int().min(0),
  difficulty: z.number(),
  /** The success of the expert before reinforcement, if it is not the family's. */
  start: z.number().optional(),
});
export type Cell = z.output<typeof cellSchema>;

const origin = z.strictObject({ commit: z.string(), node: z.string(), seconds: z.number() });
/** Why a cell has no score: the estimator needs something that this part cannot give it. */
const refused = z.string().optional();

const creditSchema = cellSchema.extend({
  /** Scores by stage; none if refused. */
  stages: z.record(z.string(), z.strictObject({ cosine: z.number(), sign: z.number() })),
  refused,
  origin,
});
export type CreditResult = z.output<typeof creditSchema>;

const trainingSchema = cellSchema.extend({
  learningRate: z.number(),
  kernels: z.string(),
  /** The held-out score at each evaluation, the first before reinforcement; empty if refused. */
  curve: z.array(z.number()),
  refused,
  origin,
});
export type TrainingResult = z.output<typeof trainingSchema>;

export const parts = {
  credit: creditSchema,
  decisions: creditSchema,
  training: trainingSchema,
  baseline: trainingSchema,
} as const;
export type PartName = keyof typeof parts;
export type ResultOf<Name extends PartName> = z.output<(typeof parts)[Name]>;

export const cellName = ({ family, estimator, seed, difficulty, start }: Cell): string =>
  `${family}/${estimator}/seed-${seed}/${difficulty}${start === undefined ? '' : `/${start}`}`;

export const resultsFile = (root: string, part: PartName): string =>
  join(root, `research/results/creditbench-${part}.jsonl`);

/**
 * The results of a part by the names of their cells. The last line may be cut off, because a process was killed; it is
 * left out. @throws Error with the file and another line that is no result
 */
export async function readPart<Name extends PartName>(root: string, part: Name): Promise<Map<string, ResultOf<Name>>> {
  const path = resultsFile(root, part);
  const results = new Map<string, ResultOf<Name>>();
  if (!existsSync(path)) return results;
  const whole = (await readFile(path, 'utf8')).split('\n').slice(0, -1);
  for (const [i, line] of whole.entries()) {
    const read = parts[part].safeParse(jsonOf(line));
    if (!read.success) throw new Error(`${path}:${i + 1} is not a result: ${z.prettifyError(read.error)}`);
    results.set(cellName(read.data), read.data as ResultOf<Name>);
  }
  return results;
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Adds a result, in place of the rest of a line that a killed process left. */
export async function addResult<Name extends PartName>(
  root: string,
  part: Name,
  result: ResultOf<Name>,
): Promise<void> {
  const path = resultsFile(root, part);
  await mkdir(dirname(path), { recursive: true });
  const before = existsSync(path) ? await readFile(path, 'utf8') : '';
  if (!before.endsWith('\n')) await writeFile(path, before.slice(0, before.lastIndexOf('\n') + 1));
  await appendFile(path, `${JSON.stringify(result)}\n`);
}
