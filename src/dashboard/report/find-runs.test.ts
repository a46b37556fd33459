import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import type { AblationRecord } from '../../method/store/ablation-record.js';
import { findRuns, lastWritten, listedAblation } from './find-runs.js';

describe('the runs of a folder', () => {
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

const record: AblationRecord = {
  version: 1,
  recipe: { source: 'math', codeHash: 'abc', overrides: ['advantage.type=rloo'] },
  vary: [
    { key: 'advantage.type', values: ['grpo', 'drmas'] },
    { key: 'training.groupSize', values: ['4', '8'] },
  ],
  seeds: 1,
  baseline: 'grpo, 4',
};

const run = (name: string, overrides: readonly string[], seed: unknown = 1) => ({
  name,
  record: {
    version: 1 as const,
    recipe: { source: 'math', overrides, codeHash: 'abc' },
    resolved: { seed },
    acceptedChanges: [],
  },
});

it('knows the variants of a grid, and which run is of which by what it overrides after all others', () => {
  const { variants, baseline, runs } = listedAblation('sweep', record, [
    run('a', ['advantage.type=rloo', 'advantage.type=drmas', 'training.groupSize=8', 'seed=3'], 3),
    run('b', ['advantage.type=rloo', 'advantage.type=grpo', 'training.groupSize=4']),
    run('stranger', ['advantage.type=grpo']),
    run('nameless', ['advantage.type=rloo', 'advantage.type=grpo', 'training.groupSize=4'], 'none'),
  ]);
  expect(variants).toEqual(['grpo, 4', 'grpo, 8', 'drmas, 4', 'drmas, 8']);
  expect(baseline).toBe('grpo, 4');
  expect(runs).toEqual([
    { name: 'a', variant: 'drmas, 8', seed: 3 },
    { name: 'b', variant: 'grpo, 4', seed: 1 },
  ]);
});

it('tells bundles apart, also where one is the beginning of another', () => {
  const bundles = [
    { name: 'as it is', overrides: [] },
    { name: 'short', overrides: ['training.steps=2'] },
    { name: 'short and steep', overrides: ['training.steps=2', 'warmStart.steps=8'] },
  ];
  const { variants, runs } = listedAblation(
    'sweep',
    { ...record, vary: [], bundles },
    bundles.map(({ overrides }, i) =>
      run(`run ${i}`, ['advantage.type=rloo', ...overrides, 'seed=1', 'warmStart.seed=1']),
    ),
  );
  expect(variants).toEqual(bundles.map(({ name }) => name));
  expect(runs.map(({ variant }) => variant)).toEqual(variants);
});
