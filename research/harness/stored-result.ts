/**
 * The results: JSON lines in research/results, one file a family of regimes, one line a run. A script makes the
 * figures, tables and claims of the page from them.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { commandOf, type Job, jobName, OVERLAP, shellText } from './declaration.js';

const count = z.int().min(0);
const share = z.number();

const agentSchema = z.strictObject({
  turns: count,
  invalid: share,
  norm: z.number(),
  maxNorm: z.number(),
  spikes: count,
  /** The gradient norm at each step, with four digits. Only if the regime keeps it. */
  norms: z.array(z.number()).optional(),
  /** The predicted inflation, averaged over steps. */
  inflation: z.number(),
  maxAbsAdvantage: z.number(),
  /** The lemma's factor at the steps that measured it, and its prediction at the same steps. */
  measured: z.array(z.strictObject({ step: count, predicted: z.number(), measured: z.number() })).optional(),
});

const originSchema = z.strictObject({
  /** The last commit of the files that decide a run's bits; with `+` if they had changed since. */
  commit: z.string(),
  drmas: z.string(),
  node: z.string(),
  seconds: z.number(),
  /** The seconds of the last evaluation, for each episode. Only if a policy has a price. */
  secondsPerEpisode: z.number().optional(),
});

/** The team's tokens in the last evaluation and their cost, for each episode. */
const spentSchema = z.strictObject({ read: z.number(), written: z.number(), cost: z.number() });

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
  /** Only if a policy has a price. */
  spent: spentSchema.optional(),
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
      /** The mean reward of its turns: its success if the reward is the team's. */
      reward: z.number(),
      rewardStd: z.number(),
      /** The predicted inflation under the baseline's estimator; null if there are too few data. */
      inflation: z.number().nullable(),
      /** The share of its learning signal under shared statistics that comes from its own rewards; null if unknown. */
      ownShare: z.number().nullable(),
    }),
  ),
  origin: originSchema,
});

const overlapSchema = z.strictObject({
  kind: z.literal('overlap'),
  command: z.string(),
  /** Of the agent's contexts after the warm start: 0 if they share no weights, 1 if they share all. */
  overlap: z.number(),
  origin: originSchema,
});

const resultSchema = z.discriminatedUnion('kind', [trainSchema, probeSchema, overlapSchema]);
export type TrainResult = z.output<typeof trainSchema>;
export type ProbeResult = z.output<typeof probeSchema>;
export type OverlapResult = z.output<typeof overlapSchema>;
export type StoredResult = z.output<typeof resultSchema>;

/** The results of a folder, by the names of their jobs. */
export interface Results {
  /** The result of a job as it is declared now; undefined if it is missing or was made with other settings. */
  of(job: Job): StoredResult | undefined;
  /** Whether a result of this name was made with other settings. */
  isStale(job: Job): boolean;
}

/** The file of a regime: `rare-10` and `rare-50` are one family, `rare`. */
const resultsPath = (root: string, { id, family = id.replace(/-\d+$/, '') }: Job['regime']) =>
  join(root, `${family}.jsonl`);

const lineSchema = z.looseObject({ job: z.string() });

/**
 * The lines of a regime's file by the names of their jobs; none if there is no file.
 * @throws Error naming the file and an invalid line
 */
async function readLines(path: string): Promise<Map<string, StoredResult>> {
  const results = new Map<string, StoredResult>();
  if (!existsSync(path)) return results;
  const lines = (await readFile(path, 'utf8')).split('\n');
  for (const [i, line] of lines.entries()) {
    if (line === '') continue;
    try {
      const { job, ...result } = lineSchema.parse(JSON.parse(line));
      results.set(job, resultSchema.parse(result));
    } catch (error) {
      const why = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
      throw new Error(`${path}:${i + 1} is not a result: ${why}`);
    }
  }
  return results;
}

/** The command that repeats a job. */
export function repeatableCommand(job: Job): string {
  const program = job.kind === 'overlap' ? ['npx', 'tsx', OVERLAP] : ['drmas'];
  return `DRMAS_KERNELS=native-avx2 ${shellText([...program, ...commandOf(job)])}`;
}

/** A stored command with the present paths of its files: `research` was named `findings` until 2026-11-27. */
const withPresentPaths = (command: string) =>
  command.replaceAll(/(?<![\w/])findings\/(regimes|harness)\//g, 'research/$1/');

/** Reads the results of these jobs. @throws Error naming a file and an invalid line */
export async function readResults(root: string, jobs: readonly Job[]): Promise<Results> {
  const paths = [...new Set(jobs.map(({ regime }) => resultsPath(root, regime)))];
  const files = await Promise.all(paths.map(readLines));
  const read = new Map(
    files
      .flatMap((file) => [...file])
      .map(([name, result]) => [name, { ...result, command: withPresentPaths(result.command) }]),
  );
  const isCurrent = (job: Job) => read.get(jobName(job))?.command === repeatableCommand(job);
  return {
    of: (job) => (isCurrent(job) ? read.get(jobName(job)) : undefined),
    isStale: (job) => read.has(jobName(job)) && !isCurrent(job),
  };
}

let lastWrite: Promise<void> = Promise.resolve();

/**
 * Writes a result into its regime's file, in place of an older one of the same job. It writes a new file and renames
 * it, one result after the other, so a killed process leaves a complete file.
 */
export function writeResult(root: string, job: Job, result: StoredResult): Promise<void> {
  const written = lastWrite.then(() => replaceLine(root, job, result));
  lastWrite = written.catch(() => {});
  return written;
}

async function replaceLine(root: string, job: Job, result: StoredResult): Promise<void> {
  const path = resultsPath(root, job.regime);
  await mkdir(root, { recursive: true });
  const results = (await readLines(path)).set(jobName(job), result);
  const lines = [...results].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, each]) => lineOf(name, each));
  await writeFile(`${path}.part`, `${lines.join('\n')}\n`);
  await rename(`${path}.part`, path);
}

function lineOf(job: string, result: StoredResult): string {
  const fields = Object.entries({ job, ...result }).map(
    ([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`,
  );
  return `{${fields.join(', ')}}`;
}

/** The fields in which two results of one job differ, except where and by whom they were made. */
export function differences(a: StoredResult, b: StoredResult): string[] {
  const flat = (value: unknown, path: string): [string, string][] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => flat(inner, path === '' ? key : `${path}.${key}`))
      : [[path, JSON.stringify(value)]];
  const fields = (result: StoredResult) => new Map(flat({ ...result, origin: undefined }, ''));
  const [left, right] = [fields(a), fields(b)];
  return [...new Set([...left.keys(), ...right.keys()])].filter((key) => left.get(key) !== right.get(key));
}
