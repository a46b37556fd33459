import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Job, jobName, jobsOf } from './declaration.js';
import { fakePart, fakeProbe, fakeTrain } from './fake-results.js';
import { MissingPiece } from './run-job.js';
import { differences, readResults, type StoredResult, writeResult } from './stored-result.js';
import { pending, type Work, workThrough } from './work-through.js';

const part = fakePart({ doses: [1, 2], seeds: [11, 12] });
const jobs = jobsOf(part);
const resultOf = (job: Job): StoredResult => (job.kind === 'probe' ? fakeProbe(job) : fakeTrain(job, 0.5));

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drmas-findings-test-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Work that records the jobs that it runs; `run` may fail. */
function noting(root: string, changes: Partial<Work> = {}) {
  const ran: string[] = [];
  const missing: string[] = [];
  const failed: string[] = [];
  const work: Work = {
    jobs: 1,
    signal: new AbortController().signal,
    run: async (job) => {
      ran.push(jobName(job));
      return resultOf(job);
    },
    store: (job, result) => writeResult(root, job, result),
    onDone() {},
    onMissing: ({ regime, variant }) => void missing.push(`${regime.id}/${variant.id}`),
    onFailed: (job) => void failed.push(jobName(job)),
    ...changes,
  };
  return { work, ran, missing, failed };
}

describe('working through jobs', () => {
  it('continues after an interruption, and does not repeat finished jobs', async () => {
    const root = join(folder, 'interrupted');
    const controller = new AbortController();
    let count = 0;
    const { work } = noting(root, {
      signal: controller.signal,
      run: async (job) => {
        if (++count === 5) controller.abort(new Error('killed'));
        controller.signal.throwIfAborted();
        return resultOf(job);
      },
    });
    await expect(workThrough(pending(jobs, await readResults(root, jobs)), work)).rejects.toThrow('killed');

    const left = pending(jobs, await readResults(root, jobs));
    expect(left.map(jobName)).toEqual(jobs.slice(4).map(jobName));
    const second = noting(root);
    await workThrough(left, second.work);
    expect(second.ran).toEqual(jobs.slice(4).map(jobName));
    expect(pending(jobs, await readResults(root, jobs))).toEqual([]);
  });

  it('repeats jobs whose results have other settings', async () => {
    const root = join(folder, 'stale');
    const [first] = jobs;
    if (first === undefined) throw new Error('the part has jobs');
    await workThrough(jobs, noting(root).work);
    const changed = jobs.map((job) => ({ ...job, regime: { ...job.regime, set: ['training.steps=7'] } }));
    const results = await readResults(root, changed);
    expect(pending(changed, results)).toHaveLength(jobs.length);
    expect(results.isStale(changed[0] ?? first)).toBe(true);
  });

  it('reports a missing requirement once, leaves out failures, and continues', async () => {
    const root = join(folder, 'missing');
    const { work, missing, failed } = noting(root, {
      run: async (job) => {
        if (job.kind === 'train' && job.variant.id === 'drmas' && job.regime.id === 'dose-1')
          throw new MissingPiece('no');
        if (job.kind === 'train' && job.variant.id === 'grpo' && job.seed === 11) throw new Error('out of luck');
        return resultOf(job);
      },
    });
    await workThrough(jobs, work);
    expect(missing).toEqual(['dose-1/drmas']);
    expect(failed).toEqual(['dose-1/grpo/seed-11', 'dose-2/grpo/seed-11']);
    const left = pending(jobs, await readResults(root, jobs));
    expect(left.map(jobName)).toEqual([
      'dose-1/grpo/seed-11',
      'dose-1/drmas/seed-11',
      'dose-2/grpo/seed-11',
      'dose-1/drmas/seed-12',
    ]);
  });
});

describe('stored results', () => {
  it('are read as they were written, and refused by name when they are something else', async () => {
    const root = join(folder, 'stored');
    const [job] = jobs;
    if (job === undefined) throw new Error('the part has jobs');
    await writeResult(root, job, resultOf(job));
    expect((await readResults(root, [job])).of(job)).toEqual(resultOf(job));
    const path = join(root, `${job.regime.id.replace(/-\d+$/, '')}.jsonl`);
    await writeFile(path, (await readFile(path, 'utf8')).replace('"success"', '"succes"'));
    await expect(readResults(root, [job])).rejects.toThrow(`${path}:1 is not a result`);
  });

  it('of one family of regimes share a file, a line each, and a newer one takes the place of the older', async () => {
    const root = join(folder, 'shared');
    const few = jobs.slice(0, 3);
    await Promise.all(few.map((job) => writeResult(root, job, resultOf(job))));
    await Promise.all(few.map((job) => writeResult(root, job, resultOf(job))));
    const results = await readResults(root, few);
    expect(few.map((job) => results.of(job))).toEqual(few.map(resultOf));
    const families = new Set(few.map(({ regime }) => regime.id.replace(/-\d+$/, '')));
    expect(families.size).toBe(1);
    const text = await readFile(join(root, `${[...families][0]}.jsonl`), 'utf8');
    expect(text.trim().split('\n')).toHaveLength(3);
  });

  it('differ by the fields that differ, not by who made them', () => {
    const [, job = jobs[0]] = jobs;
    if (job === undefined) throw new Error('the part has jobs');
    const result = fakeTrain(job, 0.5);
    expect(differences(result, { ...result, origin: { ...result.origin, commit: 'other', seconds: 9 } })).toEqual([]);
    expect(differences(result, fakeTrain(job, 0.5000001))).toEqual(['curve.1.team', 'reward']);
  });
});
