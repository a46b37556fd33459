/** The results: one small JSON file each, in docs/findings/results. Figures, tables and claims are made of them. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { commandOf, type Job, jobName, shellText } from './declaration.js';

const count = z.int().min(0);
const share = z.number();

const agentSchema = z.strictObject({
  turns: count,
  invalid: share,
  norm: z.number(),
  maxNorm: z.number(),
  spikes: count,
  /** The predicted inflation, averaged over steps. */
  inflation: z.number(),
  maxAbsAdvantage: z.number(),
});

const originSchema = z.strictObject({
  /** The last commit of what decides a run's bits; with `+` where that had changed since. */
  commit: z.string(),
  drmas: z.string(),
  node: z.string(),
  seconds: z.number(),
});

const pointSchema = z.strictObject({
  step: count,
  /** The team's avg@k, and the reward of the regime's agent in the same episodes. */
  team: z.number(),
  agent: z.number().optional(),
});

const trainSchema = z.strictObject({
  kind: z.literal('train'),
  command: z.string(),
  kernels: z.string(),
  /** The held-out tasks of an evaluation, and the episodes of each. */
  evaluated: z.strictObject({ tasks: count, samples: count }),
  /** The evaluations, the first before any step, the last after the last one. */
  curve: z.array(pointSchema).min(1),
  /** The mean reward of all training steps. */
  reward: z.number(),
  agents: z.record(z.string(), agentSchema),
  origin: originSchema,
});

const probeSchema = z.strictObject({
  kind: z.literal('probe'),
  command: z.string(),
  success: z.number(),
  agents: z.record(
    z.string(),
    z.strictObject({
      callsPerEpisode: z.number(),
      /** The mean reward of its turns: its success where the reward is the team's. */
      reward: z.number(),
      rewardStd: z.number(),
      /** The predicted inflation under the baseline's estimator; null where nothing can be judged. */
      inflation: z.number().nullable(),
      /** How much of what shared statistics feed it follows its own rewards; null where that cannot be said. */
      ownShare: z.number().nullable(),
    }),
  ),
  origin: originSchema,
});

const resultSchema = z.discriminatedUnion('kind', [trainSchema, probeSchema]);
export type TrainResult = z.output<typeof trainSchema>;
export type ProbeResult = z.output<typeof probeSchema>;
export type StoredResult = z.output<typeof resultSchema>;

/** The results of a folder, by the names of their jobs. */
export interface Results {
  /** The result of a job as it is declared now; undefined where it is missing or was made with other settings. */
  of(job: Job): StoredResult | undefined;
  /** Whether there is a result of this name that was made with other settings. */
  isStale(job: Job): boolean;
}

const resultPath = (root: string, job: Job) => join(root, `${jobName(job)}.json`);

/** The command by which anybody repeats a job. */
export const repeatableCommand = (job: Job): string =>
  `DRMAS_KERNELS=native-avx2 ${shellText(['drmas', ...commandOf(job)])}`;

/** Reads the results of these jobs. @throws Error naming a file that is not a result */
export async function readResults(root: string, jobs: readonly Job[]): Promise<Results> {
  const read = new Map<string, StoredResult>();
  for (const job of jobs) {
    const path = resultPath(root, job);
    if (read.has(jobName(job)) || !existsSync(path)) continue;
    const parsed = resultSchema.safeParse(JSON.parse(await readFile(path, 'utf8')));
    if (!parsed.success) throw new Error(`${path} is no result: ${z.prettifyError(parsed.error)}`);
    read.set(jobName(job), parsed.data);
  }
  const isCurrent = (job: Job) => read.get(jobName(job))?.command === repeatableCommand(job);
  return {
    of: (job) => (isCurrent(job) ? read.get(jobName(job)) : undefined),
    isStale: (job) => read.has(jobName(job)) && !isCurrent(job),
  };
}

/** Writes a result, so that whoever is killed leaves a whole file or none. */
export async function writeResult(root: string, job: Job, result: StoredResult): Promise<void> {
  const path = resultPath(root, job);
  await mkdir(dirname(path), { recursive: true });
  const fields = Object.entries(result).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  await writeFile(`${path}.part`, `{\n${fields.join(',\n')}\n}\n`);
  await rename(`${path}.part`, path);
}

/** The fields in which two results of one job differ, where and by whom they were made aside. */
export function differences(a: StoredResult, b: StoredResult): string[] {
  const flat = (value: unknown, path: string): [string, string][] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => flat(inner, path === '' ? key : `${path}.${key}`))
      : [[path, JSON.stringify(value)]];
  const fields = (result: StoredResult) => new Map(flat({ ...result, origin: undefined }, ''));
  const [left, right] = [fields(a), fields(b)];
  return [...new Set([...left.keys(), ...right.keys()])].filter((key) => left.get(key) !== right.get(key));
}
