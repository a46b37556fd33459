import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { afterAll, describe, expect, it } from 'vitest';
import { localFiles } from '../src/method/recipe/code-hash.js';
import { RunDirectory } from '../src/method/store/run-directory.js';
import { evaluate, resume, train } from '../src/runs/run/api.js';
import { drmas } from './support/command-line.js';

const root = mkdtempSync(join(tmpdir(), 'drmas-plug-ins-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const file = (name: string) => join(import.meta.dirname, '../examples/plug-ins', `${name}.ts`);
const stepsOf = (events: readonly RunEvent[]) => events.flatMap((event) => (event.type === 'step' ? [event] : []));

async function run(name: string, set: readonly string[] = []) {
  const directory = join(root, `${name}-${set.length}`);
  const { events } = await train(file(name), { run: directory, threads: 1, set });
  expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
  const { record } = await RunDirectory.open(directory);
  return { directory, events, settings: record.resolved as Readonly<Record<string, unknown>> };
}

describe('an estimator of a user', () => {
  it('trains, with its settings in recipe.json', async () => {
    const { directory, events, settings } = await run('own-estimator', ['advantage.scale=3']);
    expect(settings.advantage).toEqual({ type: 'median', scale: 3 });
    expect(stepsOf(events)).toHaveLength(4);
    const lines = readFileSync(join(directory, 'episodes', 'step-000001.jsonl'), 'utf8')
      .trim()
      .split('\n');
    const episodes = lines.map((line) => JSON.parse(line));
    for (let first = 0; first < episodes.length; first += 4) {
      const group = episodes.slice(first, first + 4);
      expect(new Set(group.map(({ task }) => JSON.stringify(task))).size).toBe(1);
      const rewards = group.map(({ score }) => score.team as number).toSorted((a, b) => a - b);
      const median = ((rewards[1] as number) + (rewards[2] as number)) / 2;
      for (const { score, turns } of group) expect(turns[0].advantage).toBeCloseTo(3 * (score.team - median), 6);
    }
  });

  it('evaluates and resumes from its file', async () => {
    const { directory } = await run('own-estimator', ['training.checkpointEvery=2', 'advantage.scale=3']);
    const { averageAtK } = await evaluate(directory, { tasks: 4, samples: 1, threads: 1 });
    expect(averageAtK).toBeGreaterThanOrEqual(0);
    const { events } = await resume(directory, undefined, { from: 'step-000002', threads: 1 });
    expect(stepsOf(events).map(({ step }) => step)).toEqual([1, 2, 3, 4]);
  });
});

describe('a loss of a user', () => {
  it('trains in the engine, and its module is part of the code hash', { tags: 'verify' }, async () => {
    process.env.DRMAS_TEST_LOADER = new URL('support/tsx-loader.mjs', import.meta.url).href; // for capped.ts
    const { directory, events, settings } = await run('own-loss', ['loss.cap=1']);
    expect(settings.loss).toEqual({ type: 'capped', cap: 1 });
    const clipped = stepsOf(events).map(({ agents }) => agents.writer?.clipFraction);
    // Ratios leave 1 in the second update of a step.
    expect(clipped.every((fraction) => fraction !== undefined && fraction > 0)).toBe(true);
    const hashed = await localFiles(file('own-loss'));
    expect([...hashed.keys()].map((path) => basename(path)).sort()).toEqual(['capped.ts', 'digits.ts', 'own-loss.ts']);
    const evaluated = await evaluate(directory, { tasks: 4, samples: 1, threads: 1 });
    expect(evaluated.tasks).toBe(4);
    delete process.env.DRMAS_TEST_LOADER;
  });
});

describe('a tracker of a user', () => {
  it('gets every event of the run', async () => {
    const { directory, events } = await run('own-tracker');
    const rows = stepsOf(events).map(({ step, reward }) => `${step},${reward?.mean}`);
    expect(readFileSync(join(directory, 'rewards.csv'), 'utf8')).toBe(`step,reward\n${rows.join('\n')}\n`);
  });
});

describe('a backend of a user', () => {
  it('learns, and keeps what it learnt in checkpoints', async () => {
    const { directory, events, settings } = await run('own-backend');
    expect(settings.backend).toEqual({ type: 'unigrams' });
    const started = events.find(({ type }) => type === 'run.started');
    expect(started).toMatchObject({ hardware: { kernels: 'unigrams' } });
    const rewards = stepsOf(events).map(({ reward }) => reward?.mean ?? Number.NaN);
    expect(rewards.at(-1)).toBeGreaterThan((rewards[0] as number) + 0.2);
    const { averageAtK } = await evaluate(directory, { threads: 1 });
    const last = events.findLast((event) => event.type === 'evaluation');
    expect(averageAtK).toBe(last?.averageAtK);

    const { code, err } = await drmas(['export', directory, '--agent', 'writer', '--to', join(root, 'model')]);
    expect(code).toBe(2);
    expect(err).toContain("policy 'writer' was trained on the backend 'unigrams', which exports nothing");
  });
});
