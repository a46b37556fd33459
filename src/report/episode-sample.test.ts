import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { madeUpEpisode, recordRun } from '../../test/support/recorded-run.js';
import { LogError } from '../core/errors.js';
import { RunDirectory } from '../store/run-directory.js';
import { sampleEpisodes } from './episode-sample.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-sample-'));
});
afterAll(() => rm(root, { recursive: true }));

const long = (task: number, sample: number) =>
  madeUpEpisode(`task ${task}`, sample, sample, `${task}-${sample} `.repeat(100));

it('holds every episode where they fit, in the order in which they came about', async () => {
  const path = join(root, 'small');
  await recordRun(path);
  const sample = await sampleEpisodes(path, [], 1e6);
  expect(sample.files.map(({ name }) => name)).toEqual(['evaluation 0', 'step 1', 'step 2']);
  expect([sample.shown, sample.kept]).toEqual([12, 12]);
  const group = sample.files[1]?.groups[1];
  expect(group).toMatchObject({
    task: 'two',
    episodes: [
      { sample: 0, reward: 1 },
      { sample: 1, reward: 0 },
    ],
  });
  const turns = group?.episodes[1]?.turns ?? [];
  expect(turns.map(({ advantage, reward, penalty }) => [advantage, reward, penalty])).toEqual([
    [-0.7, 0, 0],
    [-1, -0.1, 0.1],
  ]);
  expect(sample.texts[turns[0]?.text ?? -1]).toBe('an answer 1');
  expect(new Set(sample.texts).size).toBe(sample.texts.length);
});

it('otherwise whole groups, those behind a spike first, at least one a file', async () => {
  const path = join(root, 'large');
  const run = await recordRun(path);
  const episodes = Array.from({ length: 40 }, (_, i) => long(i >> 1, i & 1));
  await run.writeStepEpisodes(2, episodes);
  const spike = { type: 'spike', step: 2, policy: 'p', gradientNorm: 1, median: 1, action: 'clip' } as const;
  const sample = await sampleEpisodes(path, [{ ...spike, episodes: ['task 13/1'] }], 6000);
  const groups = sample.files.at(-1)?.groups ?? [];
  expect(groups.map(({ task }) => task)).toContain('task 13');
  expect(groups.length).toBeLessThan(20);
  expect(groups.every((group) => group.episodes.length === 2)).toBe(true);
  expect(sample.kept).toBe(48);
  expect(sample.shown).toBeLessThan(48);
  const least = await sampleEpisodes(path, [{ ...spike, episodes: ['task 13/1'] }], 0);
  expect(least.files.map((file) => file.groups.map(({ task }) => task))).toEqual([
    ['one an answer'],
    ['one an answer'],
    ['task 13'],
  ]);
});

it('names the line of what is not an episode', async () => {
  const path = join(root, 'damaged');
  await recordRun(path);
  await appendFile((await RunDirectory.open(path)).stepEpisodesPath(1), '{"task":{"id":"x"},"turns":[]}\n');
  const failed = sampleEpisodes(path, [], 1e6);
  await expect(failed).rejects.toThrow(/step-000001\.jsonl:5: score\.team: expected a number, got nothing/);
  await expect(failed).rejects.toThrow(LogError);
});
