/** A row of the benchmark that another trainer filled in: its JSON, its check, and its line in a table. */
import { readFile } from 'node:fs/promises';
import { ArgumentError, issuesText, messageOf } from '@drmas/engine/errors';
import { mean } from '@drmas/engine/math';
import { z } from 'zod';
import { UsageError } from '../../scripts/support/run-program.js';
import { families } from './families.js';
import { BUDGET, knobSchema } from './recipe.js';

const text = z.string().min(1);
const runSchema = z.strictObject({
  family: z.enum(families.map(({ id }) => id) as [string, ...string[]]),
  difficulty: z.number(),
  seed: z.int().min(0),
  /** The held-out score before training and after each quarter of the budget. */
  curve: z.array(z.number().min(0).max(1)).length(BUDGET.evaluations + 1),
  /** The episodes that training played; evaluations do not count. */
  episodes: z.int().min(1),
});

/** The format that others submit. */
export const submissionSchema = z
  .strictObject({
    benchmark: z.literal('creditbench'),
    version: z.literal(1),
    /** The name of the row, such as the estimator's. */
    name: text,
    /** The program that trained, with its version. */
    system: text,
    /** The answers to the checklist of docs/creditbench.md. */
    checklist: z.strictObject({
      /** Who gets credit: a token, a turn, an agent, an episode. */
      granularity: text,
      /** How the credit is estimated: samples, a critic, a model's judgement ... */
      method: text,
      /** The needs of the method beside the episodes: a critic, more episodes, a judge. */
      extra: text,
      /** The policy: its kind and its number of parameters. */
      policy: text,
      /** How rates and other settings were chosen, and on which seeds. */
      tuning: text,
      /** The hours of processor time of the whole row, and on what. */
      compute: text,
    }),
    runs: z.array(runSchema).min(1),
  })
  .superRefine(({ runs }, context) => {
    const most = BUDGET.steps * BUDGET.tasksPerStep * BUDGET.groupSize;
    const seen = new Set<string>();
    for (const [i, run] of runs.entries()) {
      const wrong = (message: string) => context.addIssue({ code: 'custom', path: ['runs', i], message });
      const family = families.find(({ id }) => id === run.family);
      if (family === undefined) continue; // the schema of the run has said so
      if (!knobSchema(family).safeParse(run.difficulty).success)
        wrong(`the difficulty ${run.difficulty} is out of range`);
      if (run.episodes > most) wrong(`${run.episodes} episodes are more than the budget of ${most}`);
      const key = `${run.family} at difficulty ${run.difficulty} with seed ${run.seed}`;
      if (seen.has(key)) wrong(`there are two runs of ${key}`);
      seen.add(key);
    }
  });
export type Submission = z.output<typeof submissionSchema>;

/** @throws ArgumentError with the fields that are wrong */
export function readSubmission(value: unknown): Submission {
  const read = submissionSchema.safeParse(value);
  if (!read.success) throw new ArgumentError(`this is no submission: ${issuesText(read.error.issues)}`);
  return read.data;
}

/** The score of a run: the mean of its evaluations after the first. 1 is the right policy's from the beginning. */
export const trainingScore = (curve: readonly number[]): number => mean(curve.slice(1));

/** The line of a submission in a table in Markdown: its score in each family, and the number of runs. */
export function rowOf({ name, runs }: Submission): string {
  const cells = families.map(({ id }) => {
    const scores = runs.filter(({ family }) => family === id).map(({ curve }) => trainingScore(curve));
    return scores.length === 0 ? '' : `${(100 * mean(scores)).toFixed(1)} (${scores.length})`;
  });
  return `| ${[name, ...cells].join(' | ')} |`;
}

/** The row of a submission in a file. @throws UsageError naming the file */
export async function rowOfFile(file: string): Promise<string> {
  try {
    return rowOf(readSubmission(JSON.parse(await readFile(file, 'utf8'))));
  } catch (error) {
    throw new UsageError(`${file}: ${messageOf(error)}`);
  }
}
