/** A study of runs that take a second each, and its results. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The variable that makes each episode wait so many milliseconds, by which a run takes longer and finds the same. */
export const WAIT = 'DRMAS_TEST_WAIT_MS';

/** Writes a recipe in two files, and returns the path of the first. */
export async function writeTinyStudy(folder: string): Promise<string> {
  await writeFile(join(folder, 'steps.ts'), 'export const steps = 8;\n');
  const file = join(folder, 'mine.ts');
  await writeFile(
    file,
    `import { arithmetic, defineRecipe, solverVerifier, tinyDecoder } from 'drmas';
import { steps } from './steps.js';
const team = solverVerifier({});
export default defineRecipe({
  name: 'mine',
  team: {
    ...team,
    async play(context) {
      await new Promise((resolve) => setTimeout(resolve, Number(process.env.${WAIT} ?? 0)));
      return team.play(context);
    },
  },
  agents: { solver: { sampling: { maxTokens: 4 } }, verifier: { sampling: { maxTokens: 2 } } },
  tasks: arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 }),
  model: tinyDecoder({ width: 8, layers: 1, heads: 1, feedForward: 8, context: 600, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 4, batch: 2 },
  training: { steps, tasksPerStep: 1, groupSize: 2, checkpointEvery: 2 },
  evaluation: { every: 2, tasks: 2, samples: 1 },
});
`,
  );
  return file;
}

/** The flags of a study of two variants. */
export const twoVariants = (seeds: number) => [
  ...['--vary', 'advantage.type=grpo,drmas', '--seeds', `${seeds}`, '--threads', '1', '--json'],
];

/** The lines that a command prints with `--json`. */
export const lines = (out: string) =>
  out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** The results of a study, without times and places. */
export const timeless = (out: string) =>
  JSON.parse(
    JSON.stringify(lines(out).at(-1), (key, value) => (['seconds', 'directory'].includes(key) ? undefined : value)),
  );
