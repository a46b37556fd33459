/** Works through the jobs that have no result yet. */
import { runQueue } from '../../src/runs/studies/ablation/ablation-queue.js';
import { type Job, jobName, jobsOf, type Part } from './declaration.js';
import { MissingPiece, type RunOptions } from './run-job.js';
import type { Results, StoredResult } from './stored-result.js';

/** Every job once, in the order in which questions declare them. */
export function distinct(jobs: readonly Job[]): Job[] {
  return [...new Map(jobs.map((job) => [jobName(job), job])).values()];
}

/** The jobs that are to be run: those without a current result. */
export const pending = (jobs: readonly Job[], results: Results): Job[] =>
  distinct(jobs).filter((job) => results.of(job) === undefined);

/** The results of a part that are there, and those that are declared. */
export function doneIn(part: Part, results: Results): { readonly there: number; readonly declared: number } {
  const jobs = jobsOf(part);
  const declared = distinct(jobs).length;
  return { there: declared - pending(jobs, results).length, declared };
}

export interface Progress {
  readonly done: number;
  readonly all: number;
  readonly job: Job;
}

export interface Work {
  readonly jobs: number;
  readonly signal: AbortSignal;
  run(job: Job, options: Pick<RunOptions, 'onWarm' | 'signal'>): Promise<StoredResult>;
  store(job: Job, result: StoredResult): Promise<void>;
  onDone(progress: Progress, result: StoredResult): void;
  /** A piece that is not there yet: the other seeds of it are left out without a word. */
  onMissing(job: Job, why: string): void;
  onFailed(job: Job, why: string): void;
}

/**
 * Runs the jobs, `jobs` at once. Jobs that share a warm start wait until the first has put it into the cache. A job
 * that fails is named and leaves no result, so that a later call runs it again; the others continue.
 * @throws the signal's reason when interrupted
 */
export async function workThrough(todo: readonly Job[], work: Work): Promise<void> {
  const missing = new Set<string>();
  const pieceOf = ({ kind, regime, variant }: Job) => `${kind} ${regime.id} ${variant.id}`;
  let done = 0;
  const perform = async (job: Job, onWarm: () => void) => {
    work.signal.throwIfAborted();
    if (!missing.has(pieceOf(job))) {
      try {
        const result = await work.run(job, { onWarm, signal: work.signal });
        await work.store(job, result);
        done++;
        work.onDone({ done, all: todo.length, job }, result);
        return;
      } catch (error) {
        if (work.signal.aborted) throw error;
        const why = error instanceof Error ? error.message : String(error);
        if (error instanceof MissingPiece) {
          missing.add(pieceOf(job));
          work.onMissing(job, why);
        } else work.onFailed(job, why);
      }
    }
    done++;
  };
  const queued = todo.map((job) => ({
    lane: `${job.regime.recipe} ${job.seed}`,
    run: (onWarm: () => void) => perform(job, onWarm),
  }));
  await runQueue(queued, work.jobs);
}
