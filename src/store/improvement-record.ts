/** The directory of an improvement of prompts: what was asked, and what became of every round. */
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, RunError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import { contentHash } from './files/content-hash.js';

/** The file that makes a directory an improvement. */
const IMPROVEMENT = 'improvement.json';
/** The accepted prompts, as settings that `--set @FILE` takes. */
export const PROMPTS = 'prompts.json';
const ROUNDS = 'rounds';

const recordSchema = z.object({
  version: z.literal(1),
  /** What is improved: a recipe, by its name or the absolute path of its file, or a run's directory. */
  source: z.string(),
  codeHash: z.string(),
  overrides: z.array(z.string()).readonly(),
  /** The step of the run's checkpoint that plays, where the source is a run. */
  checkpoint: z.int().optional(),
  endpoint: z.object({ url: z.string(), model: z.string() }),
  /** The agents that get new prompts, in turns. */
  agents: z.array(z.string()).readonly(),
  proposals: z.int().min(1),
  tasks: z.int().min(2),
  samples: z.int().min(1),
  /** The first and the last prompts on held-out tasks, for people and programs, once all rounds are over. */
  result: z.unknown().optional(),
});

export type ImprovementRecord = z.output<typeof recordSchema>;

const numbers = z.array(z.number()).readonly();

const comparisonSchema = z.object({
  /** The mean success of each task, with the prompts that were the best until then and with the proposed one. */
  before: numbers,
  after: numbers,
  /** The mean of the differences over tasks, and its interval. */
  mean: z.number(),
  interval: z.object({ low: z.number(), high: z.number(), level: z.number() }).optional(),
});

const roundSchema = z.object({
  /** 0 is the round in which the first prompts are played alone. */
  round: z.int().min(0),
  agent: z.string().optional(),
  /** The answer of the language model as it came. */
  answer: z.string().optional(),
  prompt: z.string().optional(),
  /** Why the answer could not be tried. */
  problem: z.string().optional(),
  comparison: comparisonSchema.optional(),
  kept: z.boolean(),
  /** The mean success of the prompts that go on from here, in their last round. */
  score: z.number(),
  /** Failed episodes of those prompts, as the next proposal is shown them. */
  failures: z.array(z.string()).readonly(),
});

/** What became of a round. A round that was not over when the process ended is not there. */
export type ImprovementRound = z.output<typeof roundSchema>;

/** The record of an improvement's directory; undefined where there is none. @throws RunError when it cannot be used */
export async function readImprovement(files: Files, directory: string): Promise<ImprovementRecord | undefined> {
  const path = join(directory, IMPROVEMENT);
  return (await files.exists(path)) ? readAs(files, path, recordSchema, 'the record of an improvement') : undefined;
}

export async function writeImprovement(files: Files, directory: string, record: ImprovementRecord): Promise<void> {
  await files.replace(join(directory, IMPROVEMENT), `${JSON.stringify(record, null, 2)}\n`);
}

/** The rounds that are over, in order. @throws RunError naming the file that cannot be used */
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

/** Writes the prompts of agents as a part of a recipe's settings. */
export async function writePrompts(
  files: Files,
  directory: string,
  prompts: Readonly<Record<string, string>>,
): Promise<void> {
  const agents = Object.fromEntries(Object.entries(prompts).map(([agent, system]) => [agent, { system }]));
  await files.replace(join(directory, PROMPTS), `${JSON.stringify({ agents }, null, 2)}\n`);
}

/** @throws RunError saying what differs, beside the number of proposals, which may grow */
export function requireSameImprovement(directory: string, before: ImprovementRecord, now: ImprovementRecord): void {
  const parts = {
    'other code of the recipe': ({ codeHash }: ImprovementRecord) => codeHash,
    'other settings': ({ overrides, checkpoint, tasks, samples }: ImprovementRecord) => [
      overrides,
      checkpoint ?? null,
      tasks,
      samples,
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
