import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Episode, Turn } from '@drmas/engine/nouns';
import type { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostile, madeUpEpisode, recordRun } from '../../../../test/support/recorded-run.js';
import { storedEpisode, type UpdatedTokens } from '../../../method/store/episode-files.js';
import type { GroupPage, ShownGroup, ShownToken } from '../../../runs/analysis/shown-episode.js';
import { RunCatalog } from '../run-catalog.js';
import { TalkService } from '../talk/talk-service.js';
import { watchApp } from '../watch-server.js';

let root: string;
let app: Hono;
const ending = new AbortController();

/** 40 groups of 4: even samples earn 1, odd ones 0 and are invalid; every tenth group failed in its last sample. */
const episodes = Array.from({ length: 160 }, (_, i): Episode => {
  const [group, sample] = [i >> 2, i & 3];
  const plain = madeUpEpisode(`task ${group}`, sample, 1 - (sample & 1), `word-${group}-${sample} "ä" ${hostile}`);
  return group % 10 === 9 && sample === 3 ? { ...plain, failure: { reason: 'error', message: 'broken' } } : plain;
});

/** The data of an update for the turns of the second samples. */
function ofSecondSamples(): Map<Turn, UpdatedTokens> {
  const tokens = new Map<Turn, UpdatedTokens>();
  for (const { sample, turns } of episodes)
    for (const turn of sample === 1 ? turns : [])
      tokens.set(turn, turn.agent === 'solver' ? { ratio: 1 } : { ratio: [1.1, 0.7, 1.5], clipped: [1, 2] });
  return tokens;
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-watch-episodes-'));
  await mkdir(join(root, 'runs'));
  const run = await recordRun(join(root, 'runs', 'first'));
  await run.writeStepEpisodes(
    3,
    episodes,
    episodes.map(() => [0.5, [-0.5, -1, -1.5]]),
    ofSecondSamples(),
  );
  await run.close();
  const catalog = new RunCatalog(join(root, 'runs'));
  await catalog.refresh();
  app = watchApp({ catalog, talk: new TalkService(), page: root, signal: ending.signal });
});
afterAll(async () => {
  ending.abort();
  await rm(root, { recursive: true });
});

async function ask<Answer>(what: string, query: Readonly<Record<string, string>>): Promise<Answer> {
  const words = new URLSearchParams({ run: 'first', file: 'step-000003', ...query });
  const response = await app.request(`http://localhost/api/${what}?${words}`);
  const answer = await response.json();
  if (response.status !== 200) throw new Error(`${response.status}: ${JSON.stringify(answer)}`);
  return answer as Answer;
}
const groups = (query: Readonly<Record<string, string>> = {}) => ask<GroupPage>('groups', query);
const counts = async (query: Readonly<Record<string, string>>) => {
  const { matchingGroups, matchingEpisodes } = await groups(query);
  return [matchingGroups, matchingEpisodes];
};

describe('the list of groups', () => {
  it('comes page by page', async () => {
    const first = await groups({ limit: '15' });
    expect(first).toMatchObject({
      groups: 40,
      episodes: 160,
      matchingGroups: 40,
      offset: 0,
      agents: ['solver', 'verifier'],
    });
    const tasks = [...first.rows, ...(await groups({ offset: '15', limit: '200' })).rows].map(({ task }) => task);
    expect(tasks).toEqual(Array.from({ length: 40 }, (_, i) => `task ${i}`));
    expect(first.rows[9]?.episodes.map(({ failed, invalid }) => [failed, invalid])).toEqual([
      [false, false],
      [false, true],
      [false, false],
      [true, true],
    ]);
  });

  it('is filtered by agent, kind, reward and words, in any combination', async () => {
    expect(await counts({ kind: 'mixed' })).toEqual([40, 160]);
    expect(await counts({ kind: 'all equal' })).toEqual([0, 0]);
    expect(await counts({ kind: 'with failures' })).toEqual([4, 4]);
    expect(await counts({ kind: 'with invalid output' })).toEqual([40, 80]);
    expect(await counts({ kind: 'with invalid output', agent: 'solver' })).toEqual([0, 0]);
    expect(await counts({ low: '0.5' })).toEqual([40, 80]);
    expect(await counts({ high: '0.5', kind: 'with failures' })).toEqual([4, 4]);
    expect(await counts({ text: 'WORD-7-2' })).toEqual([1, 1]);
    expect(await counts({ text: '"Ä" </SCRIPT>' })).toEqual([40, 160]);
    expect(await counts({ text: 'word-7-2', agent: 'verifier', high: '0' })).toEqual([0, 0]);
    expect(await counts({ text: 'broken' })).toEqual([4, 4]);
    expect(await counts({ agent: 'nobody' })).toEqual([0, 0]);
  });

  it('follows a file that grows, and leaves out a line that is being written', async () => {
    const file = join(root, 'runs', 'first', 'episodes', 'step-000004.jsonl');
    const line = (name: string) => JSON.stringify(storedEpisode(madeUpEpisode(name, 0, 1, 'x')));
    await writeFile(file, `${line('one')}\n${line('two').slice(0, 50)}`);
    expect((await groups({ file: 'step-000004' })).rows.map(({ task }) => task)).toEqual(['one']);
    await appendFile(file, `${line('two').slice(50)}\n`);
    expect((await groups({ file: 'step-000004' })).rows.map(({ task }) => task)).toEqual(['one', 'two']);
    await appendFile(file, '{"task":{"id":"x"},"turns":[]}\n');
    await expect(groups({ file: 'step-000004' })).rejects.toThrow(/500: .*step-000004\.jsonl:3: score: is required/);
  });

  it('refuses files and runs that are not there, and paths', async () => {
    await expect(groups({ file: 'step-000099' })).rejects.toThrow(/^500/);
    await expect(groups({ run: '../../etc' })).rejects.toThrow(/^404/);
    for (const file of ['../recipe', '..', '/etc/passwd', 'a/b'])
      await expect(groups({ file })).rejects.toThrow(/^400/);
    await expect(groups({ limit: '100000' })).rejects.toThrow(/^400/);
  });
});

it('gives the episodes of a group with what they read of one another', async () => {
  const group = await ask<ShownGroup>('group', { task: 'task 7' });
  expect(group.data).toBe('question: what is task 7?\nanswer: 42');
  expect(group.episodes.map(({ sample, reward }) => [sample, reward])).toEqual([
    [0, 1],
    [1, 0],
    [2, 1],
    [3, 0],
  ]);
  const [solver, verifier] = group.episodes[0]?.turns ?? [];
  expect(solver).toMatchObject({ agent: 'solver', advantage: 0.5, valid: true, reads: [], tokens: 3 });
  expect(verifier).toMatchObject({ agent: 'verifier', advantage: -1, messages: [['user', 'what is task 7?']] });
  expect(solver?.text).toContain(hostile.slice(0, 20)); // as it was written; the page shows it as text
  await expect(ask('group', { task: 'task 70' })).rejects.toThrow(/no episode of the task task 70/);
});

it('gives the tokens of a turn with what the file holds of them', async () => {
  const place = { task: 'task 7', sample: '1' };
  expect(await ask<ShownToken[]>('tokens', { ...place, turn: '0' })).toEqual(
    [3, 4, 5].map((id) => ({ text: `⟨${id}⟩`, logprob: -1, advantage: 0.5, ratio: 1, clipped: false })),
  );
  const second = await ask<ShownToken[]>('tokens', { ...place, turn: '1' });
  expect(second.map(({ advantage }) => advantage)).toEqual([-0.5, -1, -1.5]);
  expect(second.map(({ ratio, clipped }) => [ratio, clipped])).toEqual([
    [1.1, false],
    [0.7, true],
    [1.5, true],
  ]);
  expect((await ask<ShownToken[]>('tokens', { ...place, turn: '0', sample: '0' }))[0]).toMatchObject({
    ratio: null,
    clipped: false,
  });
  await expect(ask('tokens', { ...place, turn: '9' })).rejects.toThrow(/no such turn/);
});
