import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { RunError } from '../../base/core/errors.js';
import { findRuns, lastWritten } from './find-runs.js';

const root = temporaryRoot();
const folder = join(root, 'runs');

/** A directory with the files of a run; its event log was written so many seconds after the first. */
async function writeRun(name: string, seconds?: number): Promise<void> {
  const path = join(folder, name);
  await mkdir(path, { recursive: true });
  await writeFile(join(path, 'recipe.json'), '{}');
  if (seconds === undefined) return;
  const log = join(path, 'events.jsonl');
  await writeFile(log, '');
  await utimes(log, 1000 + seconds, 1000 + seconds);
}

beforeAll(async () => {
  await writeRun('early', 0);
  await writeRun('sweep/grpo-seed-1', 2);
  await writeRun('sweep/drmas-seed-1', 3);
  await writeFile(join(folder, 'sweep', 'ablation.json'), '{}');
  await writeRun('late', 5);
  await writeRun('never-begun');
});

describe('the runs of a folder', () => {
  it('are found one by one, with the ablation that they belong to', async () => {
    const { runs, ablations } = await findRuns(folder);
    expect(runs.map(({ name }) => name)).toEqual([
      ...['early', 'late', 'never-begun'],
      ...['sweep/drmas-seed-1', 'sweep/grpo-seed-1'],
    ]);
    expect([...ablations]).toEqual([['sweep', join(folder, 'sweep')]]);
  });

  it('the last that was written is a run, or the ablation of one', async () => {
    expect(await lastWritten(folder)).toBe(join(folder, 'late'));
    await utimes(join(folder, 'sweep', 'grpo-seed-1', 'events.jsonl'), 2000, 2000);
    expect(await lastWritten(folder)).toBe(join(folder, 'sweep'));
  });

  it('there is none where no run has begun', async () => {
    await expect(lastWritten(root)).rejects.toThrow(RunError);
    await expect(lastWritten(join(root, 'nowhere'))).rejects.toThrow(/there is no run in .*nowhere; name one/);
  });
});
