/** The directory of an improvement of prompts: the request, and the result of each round. */
import { join } from 'node:path';
import { contentHash } from '@drmas/engine/disk';
import { messageOf, RunError } from '@drmas/engine/errors';
import type { Files } from '@drmas/engine/host';
import { z } from 'zod';
import { IMPROVEMENT } from './run-path.js';

/** The accepted prompts, in the format of `--set @FILE`. */
export const PROMPTS = 'prompts.json';
const ROUNDS = 'rounds';

const recordSchema = z.object({
  version: z.literal(1),
  /** The source of the prompts: a recipe (its name or the absolute path of its file), or a run's directory. */
  source: z.string(),
  codeHash: z.string(),
  overrides: z.array(z.string()).readonly(),
  /** The step of the run's checkpoint that plays, if the source is a run. */
  checkpoint: z.int().optional(),
  endpoint: z.object({ url: z.string(), model: z.string() }),
  /** The agents whose prompts are improved, one after the other. */
  agents: z.array(z.string()).readonly(),
  proposals: z.int().min(1),
  tasks: z.int().min(2),
  samples: z.int().min(1),
  /** The number of tasks on which a pool of candidates is compared. Absent without a pool. */
  pool: z.int().min(2).optional(),
  /** The scores of the first and the last prompts on held-out tasks, after all rounds. */
  result: z.unknown().optional(),
});

export type ImprovementRecord = z.output<typeof recordSchema>;

const numbers = z.array(z.number()).readonly();

const comparisonSchema = z.object({
  /** The mean success of each task with the prompts before and with the proposed prompt, if both have a score. */
  before: numbers,
  after: numbers,
  /** Present if the reward of some episodes failed: their number, and the number of all episodes of both sets. */
  unscored: z.int().optional(),
  episodes: z.int().optional(),
  /** The mean of the differences over tasks, and its interval. */
  mean: z.number(),
  interval: z.object({ low: z.number(), high: z.number(), level: z.number() }).optional(),
});

const roundSchema = z.object({
  /** 0 is the round that plays only the first prompts. */
  round: z.int().min(0),
  agent: z.string().optional(),
  /** The complete answer of the language model. */
  answer: z.string().optional(),
  prompt: z.string().optional(),
  /** The reason why the answer could not be played. */
  problem: z.string().optional(),
  comparison: comparisonSchema.optional(),
  kept: z.boolean(),
  /** The mean success, in this round, of the prompts that the next round starts from. With a pool: of the parent's. */
  score: z.number(),
  /** Failed episodes of those prompts, for the next request. With a pool, this round's request contains them. */
  failures: z.array(z.string()).readonly(),
  /** In round 0: the system prompt that each agent read, from the recipe or from the agent's program. */
  brought: z.record(z.string(), z.string()).optional(),
  /** With a pool: the round that proposed the candidate which this round changes. */
  parent: z.int().min(0).optional(),
  /** If the prompts of this round are a candidate of the pool: the mean success of each of its tasks. */
  scores: z.array(z.number().nullable()).readonly().optional(),
});

/** The result of a round. A round that had not ended when the process ended has none. */
export type ImprovementRound = z.output<typeof roundSchema>;

/** The record of an improvement's directory. Undefined if there is none. @throws RunError if it cannot be used */
export async function readImprovement(files: Files, directory: string): Promise<ImprovementRecord | undefined> {
  const path = join(directory, IMPROVEMENT);
  return (await files.exists(path)) ? readAs(files, path, recordSchema, 'the record of an improvement') : undefined;
}

export async function writeImprovement(files: Files, directory: string, record: ImprovementRecord): Promise<void> {
  await files.replace(join(directory, IMPROVEMENT), `${JSON.stringify(record, null, 2)}\n`);
}

/** The completed rounds, in order. @throws RunError with the file that cannot be used */
export async function readRounds(files: Files, directory: string): Promise<ImprovementRound[]> {
  const rounds: ImprovementRound[] = [];
  for (;;) {
    const path = roundPath(directory, rounds.length);
    if (!(await files.exists(path))) return rounds;
    rounds.push(await readAs(files, path, roundSchema, 'a round of an improvement'));
  }
}

export async function writeRound(files: Files, directory: string, round: ImprovementRound): Promise<void> {
  await files.makeDirectory(join(directory, ROUNDS));
  await files.replace(roundPath(directory, round.round), `${JSON.stringify(round, null, 2)}\n`);
}

/** Writes the agents' prompts as a part of a recipe's settings. */
export async function writePrompts(
  files: Files,
  directory: string,
  prompts: Readonly<Record<string, string>>,
): Promise<void> {
  const agents = Object.fromEntries(Object.entries(prompts).map(([agent, system]) => [agent, { system }]));
  await files.replace(join(directory, PROMPTS), `${JSON.stringify({ agents }, null, 2)}\n`);
}

/** @throws RunError with the difference. The number of proposals may differ */
export function requireSameImprovement(directory: string, before: ImprovementRecord, now: ImprovementRecord): void {
  const parts = {
    'other code of the recipe': ({ codeHash }: ImprovementRecord) => codeHash,
    'other settings': ({ overrides, checkpoint, tasks, samples, pool }: ImprovementRecord) => [
      overrides,
      checkpoint ?? null,
      tasks,
      samples,
      pool ?? null,
    ],
    'other agents': ({ agents }: ImprovementRecord) => agents,
  };
  const different = Object.entries(parts).find(([, part]) => contentHash(part(before)) !== contentHash(part(now)));
  if (different !== undefined)
    throw new RunError(`${directory} was begun with ${different[0]}; choose another directory with --run`);
}

const roundPath = (directory: string, round: number) =>
  join(directory, ROUNDS, `${String(round).padStart(3, '0')}.json`);

async function readAs<S extends z.ZodType>(files: Files, path: string, schema: S, what: string): Promise<z.output<S>> {
  try {
    return schema.parse(JSON.parse(await files.readText(path)));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error);
    throw new RunError(`${path} is not ${what}: ${why}`);
  }
}
