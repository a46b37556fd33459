import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogError } from '@drmas/engine/errors';
import type { Spike } from '@drmas/engine/events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { started } from '../../../test/fixtures/run-events.js';
import { madeUpEpisode, prepareRun, recordRun } from '../../../test/support/recorded-run.js';
import { storedEpisode } from '../../method/store/episode-files.js';
import { RunDirectory } from '../../method/store/run-directory.js';
import { LOCK } from '../../method/store/run-lock.js';
import { TextPool, unpack } from '../../runs/analysis/packed-texts.js';
import { MOST_TURNS, type ShownGroup } from '../../runs/analysis/shown-episode.js';
import { readRun, sampleEpisodes } from './run-data.js';
import { shownGroup } from './shown-episodes.js';

describe('episode sample', () => {
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-sample-'));
  });
  afterAll(() => rm(root, { recursive: true }));

  async function sampled(path: string, spikes: readonly Spike[], bytes: number) {
    const pool = new TextPool();
    const { files, shown, kept } = await sampleEpisodes(path, spikes, bytes, pool);
    const groups = files.map((file) => file.groups.map((packed) => unpack(packed, pool.texts) as ShownGroup));
    return { names: files.map(({ name }) => name), groups, shown, kept, texts: pool.texts };
  }

  const long = (task: number, sample: number) =>
    madeUpEpisode(`task ${task}`, sample, sample, `${task}-${sample} `.repeat(100));

  it('holds every episode where they fit', async () => {
    const path = join(root, 'small');
    await recordRun(path);
    const { names, groups, shown, kept, texts } = await sampled(path, [], 1e6);
    expect(names).toEqual(['evaluation-000000', 'step-000001', 'step-000002']);
    expect([shown, kept]).toEqual([12, 12]);
    const group = groups[1]?.[1];
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
    expect(turns[0]?.text).toBe('an answer 1');
    expect(new Set(texts).size).toBe(texts.length);
  });

  it('otherwise whole groups, those behind a spike first, and of fewer files where there is no room for all', async () => {
    const path = join(root, 'large');
    const run = await recordRun(path);
    const episodes = Array.from({ length: 40 }, (_, i) => long(i >> 1, i & 1));
    await run.writeStepEpisodes(2, episodes);
    const spike: Spike = {
      type: 'spike',
      step: 2,
      policy: 'p',
      gradientNorm: 1,
      median: 1,
      action: 'clip',
      episodes: ['task 13/1'],
    };
    const { groups, shown, kept } = await sampled(path, [spike], 24_000);
    const last = groups.at(-1) ?? [];
    expect(last.map(({ task }) => task)).toContain('task 13');
    expect(last.length).toBeLessThan(20);
    expect(last.every((group) => group.episodes.length === 2)).toBe(true);
    expect(kept).toBe(48);
    expect(shown).toBeLessThan(48);
    const least = await sampled(path, [spike], 0);
    expect([least.names, least.groups.map((file) => file.map(({ task }) => task))]).toEqual([
      ['step-000002'],
      [['task 13']],
    ]);
    expect([least.shown, least.kept]).toEqual([2, 48]);
  });

  it('names the line of what is not an episode', async () => {
    const path = join(root, 'damaged');
    await recordRun(path);
    await appendFile((await RunDirectory.open(path)).stepEpisodesPath(1), '{"task":{"id":"x"},"turns":[]}\n');
    const failed = sampled(path, [], 1e6);
    await expect(failed).rejects.toThrow(/step-000001\.jsonl:5: score: is required: an object/);
    await expect(failed).rejects.toThrow(LogError);
  });

  it('names the line of an episode whose messages are none', async () => {
    const path = join(root, 'strange');
    await recordRun(path);
    const row = { task: { id: 'x' }, score: { team: 1 }, turns: [{ reward: 1, messages: 5 }] };
    await appendFile((await RunDirectory.open(path)).stepEpisodesPath(1), `${JSON.stringify(row)}\n`);
    await expect(sampled(path, [], 1e6)).rejects.toThrow(
      /step-000001\.jsonl:5: .*turns\.0\.messages: expected an array, got 5/,
    );
  });
});

it('tells a run that goes on from an interrupted one', async () => {
  const root = await mkdtemp(join(tmpdir(), 'drmas-state-'));
  const path = join(root, 'run');
  const run = await prepareRun(path);
  run.emit(started);
  const state = async () => (await readRun({ path, name: 'run' }, 0, new TextPool())).embedded.listed.state;
  expect(await state()).toBe('running');
  await run.close();
  const gone = { pid: 2 ** 30, host: hostname(), since: new Date(0).toISOString() };
  await writeFile(join(path, LOCK), JSON.stringify(gone));
  expect(await state()).toBe('interrupted');
  await rm(root, { recursive: true });
});

const episode = madeUpEpisode('sum', 0, 1, 'an answer');
const [solver, verifier] = episode.turns;
if (solver === undefined || verifier === undefined) throw new Error('the fixture has no turns');

it('says which earlier turns a turn read: by their words, or by their names', () => {
  const question = { role: 'user' as const, content: 'is this right?\nan answer' };
  const turns = [
    { ...solver, id: 'a' },
    { ...verifier, id: 'b', text: 'no', messages: [question] },
    { ...verifier, messages: [{ role: 'system' as const, content: 'an answer' }] },
    { ...solver, messages: [{ role: 'assistant' as const, content: 'rewritten', turnId: 'b' }] },
    { ...solver, messages: [] },
  ];
  const [shown] = shownGroup('sum', [storedEpisode({ ...episode, turns })]).episodes;
  expect(shown?.turns.map(({ reads }) => reads)).toEqual([[], [0], [], [1], []]);
});

it('shows the tools that a turn called, in the turn and in later prompts', () => {
  const toolCalls = [{ id: 'c', name: 'price', arguments: '{"of":"fig"}' }];
  const messages = [{ role: 'assistant' as const, content: '', toolCalls }];
  const turns = [
    { ...solver, text: '@price(fig)', content: '', toolCalls },
    { ...solver, messages },
  ];
  const [shown] = shownGroup('sum', [storedEpisode({ ...episode, turns })]).episodes;
  expect(shown?.turns[0]?.text).toBe('price({"of":"fig"})');
  expect(shown?.turns[1]?.messages).toEqual([['assistant', 'price({"of":"fig"})']]);
});

it('shows rewards by their parts, what was logged and what was returned, and cuts what is too long', () => {
  const score = { team: 1, agents: { verifier: 0.5 }, parts: { a: 0.25, b: 0.75 }, metrics: { tries: 2 } };
  const log = [
    { name: 'tool', value: { hits: 3 } },
    { name: 'page', value: 'x'.repeat(9000) },
  ];
  const [shown] = shownGroup('sum', [storedEpisode({ ...episode, score, log })]).episodes;
  expect(shown).toMatchObject({ agents: { verifier: 0.5 }, parts: { a: 0.25 }, metrics: { tries: 2 } });
  expect(shown?.outcome).toBe('{"answer":"an answer"}');
  expect(shown?.log[0]).toEqual(['tool', '{"hits":3}']);
  expect(shown?.log[1]?.[1]).toMatch(/^x{6000}\n… \(3000 more characters in the episode file\)$/);
});

it.each([
  [3, 3, []],
  [MOST_TURNS, MOST_TURNS, []],
  [MOST_TURNS + 1, MOST_TURNS, [['turns', '1 more in the episode file']]],
  [40_000, MOST_TURNS, [['turns', '39,000 more in the episode file']]],
])('shows of an episode of %i turns the first %i, since it compares each with each', (length, shownTurns, log) => {
  const stored = storedEpisode(episode);
  const turns = Array.from({ length }, (_, i) => stored.turns[i % 2] as (typeof stored.turns)[number]);
  const [shown] = shownGroup('sum', [{ ...stored, turns }]).episodes;
  expect(shown?.turns).toHaveLength(shownTurns);
  expect(shown?.log.slice(-1)).toEqual(log);
});
