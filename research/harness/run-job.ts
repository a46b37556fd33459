/** Runs one job as the command line would, in a separate process, and makes its result from the output files. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { EvaluationEvent, RunEvent, RunStarted } from '@drmas/engine/events';
import { isScored } from '@drmas/engine/nouns';
import { fetchModel } from '../../scripts/support/smollm2.js';
import { summariseRun } from '../../src/runs/analysis/ablation-summary.js';
import { commandOf, type Job, jobName, OVERLAP } from './declaration.js';
import {
  type OverlapResult,
  type ProbeResult,
  repeatableCommand,
  type StoredResult,
  type TrainResult,
} from './stored-result.js';

/** The root of the repository. */
export const root = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = [join(root, 'dist/src/cli/main.js')];
const OVERLAP_PROGRAM = ['--import', 'tsx', join(root, OVERLAP)];
/** The exit code of a request that is wrong: a recipe, a setting or an estimator that is not there. */
const WRONG_REQUEST = 2;
/** The events that may come before a run's warm start is in the cache. */
const BEFORE_REINFORCEMENT: readonly string[] = ['run.started', 'warning', 'warmup'];

/** A job's requirement is not present yet. */
export class MissingPiece extends Error {}

export interface RunOptions {
  /** The folder of run directories, outside the repository. */
  readonly runs: string;
  /** Keeps run directories in their place. */
  readonly keep: boolean;
  readonly signal: AbortSignal;
  /** Called once the job's warm start is in the cache. */
  readonly onWarm: () => void;
}

/** Runs a job anew. @throws MissingPiece when its request is wrong; Error when it fails; the signal's reason */
export async function runJob(job: Job, options: RunOptions): Promise<StoredResult> {
  const run = join(options.runs, jobName(job));
  await rm(run, { recursive: true, force: true }); // the rest of a job that was killed
  const { model } = job.regime;
  if (model !== undefined && !existsSync(join(root, model))) {
    await mkdir(dirname(join(root, model)), { recursive: true });
    await symlink(await fetchModel(), join(root, model)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error; // a run beside this one made it
    });
  }
  const started = performance.now();
  const train = job.kind === 'train';
  const program =
    job.kind === 'overlap'
      ? [...OVERLAP_PROGRAM, ...commandOf(job)]
      : [...PROGRAM, ...commandOf(job), '--json', ...(train ? ['--run', run] : [])];
  const lines = await execute(program, options, (line) => {
    if (!BEFORE_REINFORCEMENT.includes(String(line.type))) options.onWarm();
  });
  const seconds = Math.round((performance.now() - started) / 100) / 10;
  const result = train
    ? trainResult(job, await readEvents(run), seconds)
    : job.kind === 'probe'
      ? probeResult(job, lines.at(-1) as unknown as PlanLine, seconds)
      : overlapResult(job, Number(lines.at(-1)?.overlap), seconds);
  if (train && !options.keep) await rm(run, { recursive: true, force: true });
  return result;
}

type Line = Readonly<Record<string, unknown>>;

async function execute(
  words: readonly string[],
  { signal }: RunOptions,
  onLine: (line: Line) => void,
): Promise<Line[]> {
  const child = spawn(process.execPath, words, {
    cwd: root,
    env: { ...process.env, DRMAS_KERNELS: 'native-avx2' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stop = () => child.kill('SIGKILL'); // results of an unfinished job are not used
  signal.addEventListener('abort', stop);
  const lines: Line[] = [];
  let complaint = '';
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as Line;
    lines.splice(0, lines.length, line); // the last one is all that is needed
    onLine(line);
  });
  child.stderr.on('data', (chunk) => {
    complaint += String(chunk);
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  signal.removeEventListener('abort', stop);
  signal.throwIfAborted();
  const why = complaint.trim().split('\n').slice(-3).join(' ');
  if (code === WRONG_REQUEST) throw new MissingPiece(why);
  if (code !== 0) throw new Error(`drmas ${words.join(' ')} ended with ${code}: ${why}`);
  return lines;
}

async function readEvents(run: string): Promise<RunEvent[]> {
  const text = await readFile(join(run, 'events.jsonl'), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RunEvent);
}

/** The result of a run, from its events. */
function trainResult(job: Job, events: readonly RunEvent[], seconds: number): TrainResult {
  const started = events.find((event): event is RunStarted & RunEvent => event.type === 'run.started');
  const evaluations = events.filter((event): event is EvaluationEvent & RunEvent => event.type === 'evaluation');
  const { reward, agents } = summariseRun({ name: jobName(job), variant: job.variant.id, seed: job.seed }, events);
  return {
    kind: 'train',
    command: repeatableCommand(job),
    kernels: `${started?.hardware.kernels} ${started?.hardware.isa}`,
    evaluated: { tasks: evaluations.at(-1)?.tasks ?? 0, samples: evaluations.at(-1)?.samples ?? 0 },
    curve: evaluations.filter(isScored).map(({ step, averageAtK, agents: measured }) => {
      const { reward } = measured[job.regime.agent] ?? {};
      return { step, team: averageAtK, ...(reward === undefined ? {} : { agent: reward }) };
    }),
    reward,
    agents: Object.fromEntries(
      Object.entries(agents).map(([name, { turns, invalid, norm, maxNorm, spikes, inflation, maxAbsAdvantage }]) => [
        name,
        {
          turns,
          invalid,
          norm,
          maxNorm,
          spikes,
          inflation,
          maxAbsAdvantage,
          ...measuredOf(events, name),
          ...(job.regime.keepsNorms === true && name === job.regime.agent ? { norms: normsOf(events, name) } : {}),
        },
      ]),
    ),
    ...spentOf(evaluations.at(-1), started?.versions.drmas ?? '', seconds),
  };
}

/** The origin of a run, and what an episode of its last evaluation cost if a policy has a price. */
function spentOf(
  last: EvaluationEvent | undefined,
  drmas: string,
  seconds: number,
): Pick<TrainResult, 'origin' | 'spent'> {
  const origin = originOf(drmas, seconds);
  if (last?.cost === undefined) return { origin };
  const episodes = last.tasks * last.samples;
  const tokens = Object.values(last.agents).flatMap(({ tokens }) => tokens ?? []);
  const each = (kind: 'read' | 'written') => tokens.reduce((sum, count) => sum + count[kind], 0) / episodes;
  return {
    spent: { read: each('read'), written: each('written'), cost: last.cost / episodes },
    origin: { ...origin, secondsPerEpisode: last.seconds / episodes },
  };
}

/** An agent's measured inflation, at the steps that measured it. */
function measuredOf(events: readonly RunEvent[], agent: string): Pick<TrainResult['agents'][string], 'measured'> {
  const measured = events.flatMap((event) => {
    const { predicted, measured } = event.type === 'step' ? (event.agents[agent]?.inflation ?? {}) : {};
    return event.type !== 'step' || predicted === undefined || measured === undefined
      ? []
      : [{ step: event.step, predicted, measured }];
  });
  return measured.length === 0 ? {} : { measured };
}

/** An agent's gradient norm at each step that trained it, with four digits. */
const normsOf = (events: readonly RunEvent[], agent: string): number[] =>
  events.flatMap((event) => {
    const { gradientNorm } = event.type === 'step' ? (event.agents[agent] ?? {}) : {};
    return typeof gradientNorm === 'number' ? [Number(gradientNorm.toPrecision(4))] : [];
  });

/** The fields of the output of `drmas plan --play --json` that are kept. */
interface PlanLine {
  readonly played: {
    readonly success: { readonly mean: number };
    readonly agents: Readonly<
      Record<string, { readonly callsPerEpisode: number; readonly rewardMean: number; readonly rewardStd: number }>
    >;
    readonly estimators: Readonly<Record<string, Readonly<Record<string, Predicted>>>>;
  };
}

interface Predicted {
  readonly inflation: number | null;
  readonly ownShare: number | null;
}

/** The result of a probe; the recipe's estimator comes first in its output. */
function probeResult(job: Job, { played }: PlanLine, seconds: number): ProbeResult {
  const [predicted = {}] = Object.values(played.estimators);
  return {
    kind: 'probe',
    command: repeatableCommand(job),
    success: played.success.mean,
    agents: Object.fromEntries(
      Object.entries(played.agents).map(([name, { callsPerEpisode, rewardMean, rewardStd }]) => [
        name,
        {
          callsPerEpisode,
          reward: rewardMean,
          rewardStd,
          inflation: predicted[name]?.inflation ?? null,
          ownShare: predicted[name]?.ownShare ?? null,
        },
      ]),
    ),
    origin: originOf('', seconds),
  };
}

const overlapResult = (job: Job, overlap: number, seconds: number): OverlapResult => ({
  kind: 'overlap',
  command: repeatableCommand(job),
  overlap,
  origin: originOf('', seconds),
});

const originOf = (drmas: string, seconds: number) => ({
  commit: commit(),
  drmas,
  node: process.versions.node,
  seconds,
});

let known: string | undefined;

/** The files that decide the bits of a run; the declarations of questions do not. */
const FAMILIES = ['families', 'game', 'recipe'].map((name) => `research/creditbench/${name}.ts`);
const DECISIVE = ['src', 'packages/engine', 'recipes', 'research/regimes', ...FAMILIES, 'package-lock.json'];

function commit(): string {
  known ??= commitOf(DECISIVE);
  return known;
}

/** The last commit of these files, relative to the root, with `+` if they have changed since. */
export function commitOf(files: readonly string[]): string {
  const git = (...words: string[]) => execFileSync('git', [...words, '--', ...files], { cwd: root, encoding: 'utf8' });
  const changed = git('status', '--porcelain').trim();
  return git('log', '-1', '--format=%h', '--abbrev=12').trim() + (changed === '' ? '' : '+');
}
