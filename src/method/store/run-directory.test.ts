import { existsSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import type { RunEvent, Spike, Step } from '@drmas/engine/events';
import type { Files } from '@drmas/engine/host';
import type { Episode, Turn } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { step } from '../../../test/fixtures/run-events.js';
import { readEpisodes } from './episode-files.js';
import { RunDirectory } from './run-directory.js';
import { defaultRunPath } from './run-path.js';
import type { RunRecord } from './run-record.js';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-runs-'));
});
afterEach(() => rm(root, { recursive: true }));

const record: RunRecord = {
  version: 1,
  recipe: { source: 'math', overrides: ['seed=2'], codeHash: 'abc' },
  resolved: { name: 'math', seed: 2 },
  acceptedChanges: [],
};
/** The text of each file of a run, all but its lock. */
async function contentOf(run: string): Promise<Record<string, string>> {
  const files = (await readdir(run, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name)).filter((path) => !path.endsWith('lock'));
  return Object.fromEntries(await Promise.all(paths.map(async (path) => [path, await readFile(path, 'utf8')])));
}

const clock = { seconds: () => 0, now: () => new Date('2026-01-02T03:04:05Z') };
const warning = (message: string) => ({ type: 'warning', code: 'test', message }) as const;

const dropped: Spike = {
  type: 'skipped',
  step: 1,
  policy: 'solver',
  gradientNorm: null,
  median: 0,
  action: 'skip',
  episodes: [],
};
const same = { x: 1 };

const episode: Episode = {
  task: { id: 'one', data: { question: '1+1' } },
  sample: 0,
  outcome: { answer: 2n },
  score: { team: 1, agents: {}, parts: {} },
  turns: [
    {
      agent: 'solver',
      policy: 'solver',
      policyVersion: 1,
      turn: 0,
      call: 0,
      messages: [{ role: 'user', content: '1+1' }],
      prompt: [1, 2],
      response: [3, 4],
      logprobs: [-0.1, -0.30000001192092896],
      temperature: 1,
      finishReason: 'stop',
      text: '2',
      value: 2,
      valid: true,
      penalty: 0.25,
    },
  ],
};

describe('creating a run', () => {
  it('writes recipe.json and can be opened again', async () => {
    const path = join(root, 'deep', 'run');
    await RunDirectory.create(path, record);
    const opened = await RunDirectory.open(path);
    expect(opened.record).toEqual(record);
    expect(opened.name).toBe('run');
    expect(await opened.events()).toEqual([]);
    expect(await opened.latestCheckpoint()).toBeUndefined();
  });

  it('refuses a directory that is not empty and does not change it', async () => {
    await writeFile(join(root, 'notes.txt'), 'mine');
    await expect(RunDirectory.create(root, record)).rejects.toThrow(/exists and is not empty/);
    expect(await readdir(root)).toEqual(['notes.txt']);
    await mkdir(join(root, 'empty'));
    await expect(RunDirectory.create(join(root, 'empty'), record)).resolves.toBeDefined();
  });

  it('reports a directory that cannot be written', async () => {
    await writeFile(join(root, 'file'), '');
    const error = await RunDirectory.create(join(root, 'file', 'run'), record).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RunError);
    expect(String(error)).toMatch(/cannot be written/);
    if (existsSync('/proc'))
      await expect(RunDirectory.create('/proc/no/run', record)).rejects.toThrow(/cannot be written/);
  });

  it('refuses to open a directory that is not a run', async () => {
    await expect(RunDirectory.open(root)).rejects.toThrow(`${root} is not a run: it has no recipe.json`);
    await expect(RunDirectory.open(join(root, 'missing'))).rejects.toThrow(/there is no run .*missing; `drmas runs`/);
    await mkdir(join(root, 'first'));
    await writeFile(join(root, 'first', 'recipe.json'), '{}');
    await expect(RunDirectory.open(join(root, 'frist'))).rejects.toThrow(
      /there is no run .*frist; did you mean 'first'\? \(known: first\)$/,
    );
    await writeFile(join(root, 'recipe.json'), '{"version": 1');
    await expect(RunDirectory.open(root)).rejects.toThrow(/recipe\.json is not the record of a run: it is not JSON/);
    await writeFile(join(root, 'recipe.json'), '{"version": 1}');
    await expect(RunDirectory.open(root)).rejects.toThrow(/recipe/);
  });

  it('gets a name from recipe and time', async () => {
    const existing = new Set<string>();
    const files = { ...nodeFiles, exists: async (path: string) => existing.has(path) };
    const first = await defaultRunPath('my team', { clock, files });
    expect(first).toMatch(/^runs[/\\]my-team-20260102-\d{6}$/);
    existing.add(first);
    expect(await defaultRunPath('my team', { clock, files })).toBe(`${first}-2`);
    for (const odd of ['x'.repeat(300), '..', '\u202e', 'a/../b', '\n', 'CON', ''])
      expect(await defaultRunPath(odd, { clock, files }), odd).toMatch(/^runs[/\\][\w-]{0,100}-20260102-\d{6}$/);
  });
});

describe('the event log', () => {
  it('stamps events, counts bytes and lines, and passes events to the sinks', async () => {
    const seen: RunEvent[] = [];
    const run = await RunDirectory.create(join(root, 'run'), record, {
      clock,
      listeners: [{ event: (e) => void seen.push(e) }],
    });
    run.emit(warning('ünïcode'));
    expect(seen).toEqual([{ ...warning('ünïcode'), time: '2026-01-02T03:04:05.000Z', version: 1 }]);
    expect(await run.events()).toEqual(seen);
  });

  it('omits an incomplete last line and names a damaged one', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record);
    run.emit(warning('whole'));
    const path = join(run.path, 'events.jsonl');
    await appendFile(path, '{"type":"warn');
    expect(await run.events()).toHaveLength(1);
    await appendFile(path, '\n{"type":"warning"}\n');
    await expect(run.events()).rejects.toThrow(/events\.jsonl:2: expected an event/);
  });
});

it('restores NaN in measurements, and only there', async () => {
  const run = await RunDirectory.create(join(root, 'run'), record);
  const agents = {
    solver: { ...step(1).agents.solver, gradientNorm: Number.NaN, inflation: { predicted: Number.NaN } },
  };
  const policies = { solver: { gradientNorm: Number.NaN, learningRate: 0.1 } };
  const events = [step(1, { agents, policies } as Partial<Step>), dropped];
  for (const event of events) run.emit(event);
  expect(await run.events()).toEqual(events.map((event) => expect.objectContaining(event)));
});

describe('episodes on disk', () => {
  it('hold any value that a team returned: circular references and unreadable values become text', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record);
    const circular: Record<string, unknown> = { answer: '2', twice: [same, same] };
    circular.self = circular;
    const broken = {
      toJSON() {
        throw new Error('no');
      },
    };
    const turn = { ...(episode.turns[0] as Turn), value: broken };
    const large = { ...(episode.turns[0] as Turn), duration: 7n as unknown as number };
    await run.writeStepEpisodes(1, [
      { ...episode, outcome: circular },
      { ...episode, turns: [turn], outcome: broken },
      { ...episode, turns: [large], outcome: () => 2 },
    ]);
    const [first, second, third] = await readEpisodes(nodeFiles, run.stepEpisodesPath(1));
    expect(first?.outcome).toEqual({ answer: '2', twice: [same, same], self: '[circular]' });
    expect(second?.outcome).toBe('[cannot be written as JSON: no]');
    expect(second?.turns[0]).toMatchObject({ text: '2', value: '[cannot be written as JSON: no]' });
    expect(third).toMatchObject({ outcome: '() => 2', turns: [{ text: '2', duration: '7' }] });
  });

  it('hold tokens, rewards and advantages, each number exactly', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record);
    await run.writeStepEpisodes(12, [episode], [[-1.5]]);
    await run.writeEvaluationEpisodes(60, [episode]);
    expect(await readdir(join(run.path, 'episodes'))).toEqual(['evaluation-000060.jsonl', 'step-000012.jsonl']);
    const [stored] = await readEpisodes(nodeFiles, run.stepEpisodesPath(12));
    expect(stored?.turns[0]).toEqual({ ...episode.turns[0], reward: 0.75, advantage: -1.5 });
    expect(stored?.outcome).toEqual({ answer: '2' });
    const [evaluated] = await readEpisodes(nodeFiles, run.evaluationEpisodesPath(60));
    expect(evaluated?.turns[0]).not.toHaveProperty('advantage');
  });
});

describe('episodes that are read', () => {
  const stored = { task: { id: 't', data: 1 }, sample: 0, score: { team: 1, agents: {}, parts: {} } };
  const turn = { agent: 'solver', messages: [{ role: 'user', content: 'Hi' }], text: 'a' };

  async function readBack(row: unknown) {
    const path = join(root, 'episodes.jsonl');
    await writeFile(path, `${JSON.stringify({ ...stored, turns: [turn] })}\n${JSON.stringify(row)}\n`);
    return readEpisodes(nodeFiles, path);
  }

  it('have their scores and turns, else the line is named', async () => {
    const [message] = turn.messages;
    const strangeTurns: unknown[] = [
      ...[null, {}, 5, [null], [5], [{}], [{ ...turn, agent: 5 }], [{ ...turn, messages: 5 }]],
      ...[[{ ...turn, messages: [null] }], [{ ...turn, messages: [{ ...message, content: null }] }]],
    ];
    const rows = [
      ...[null, 5, 'x', [], {}, { ...stored }, { turns: [turn] }],
      ...strangeTurns.map((turns) => ({ ...stored, turns })),
      ...[{ score: 5 }, { score: null }, { task: 'a' }].map((part) => ({ ...stored, turns: [turn], ...part })),
    ];
    for (const row of rows) {
      const read = readBack(row);
      await expect(read, JSON.stringify(row)).rejects.toThrow(
        /episodes\.jsonl:2: (expected an episode as one JSON|\S+: (expected|is required))/,
      );
      await expect(read).rejects.toThrow(RunError);
    }
  });

  it('may lack the fields that early versions did not write, and have unknown ones', async () => {
    const [, early] = await readBack({ ...stored, score: { team: 1 }, turns: [{ agent: 'solver' }], later: 1 });
    expect(early).toEqual({ ...stored, turns: [{ agent: 'solver', messages: [] }], later: 1 });
  });
});

describe('one writer', () => {
  it('creates a run that others may read, and that the next process may write after it is closed', async () => {
    const path = join(root, 'run');
    const first = await RunDirectory.create(path, record);
    const reader = await RunDirectory.open(path);
    expect(reader.record).toEqual(record);
    await expect(reader.lock()).rejects.toThrow(/is being written by this process itself, since \d{4}-/);
    await first.lock(); // holds it already
    await first.close();
    expect(await reader.lock()).toBeUndefined();
    await expect(first.lock()).rejects.toThrow(RunError);
    await reader.close();
  });

  it('uses a directory that a killed process left before it wrote recipe.json', async () => {
    const path = join(root, 'run');
    await mkdir(join(path, 'episodes'), { recursive: true });
    await mkdir(join(path, 'checkpoints'));
    await writeFile(join(path, 'lock'), '');
    await writeFile(join(path, '.tmp-recipe.json-1x'), '{"ver');
    const run = await RunDirectory.create(path, record);
    expect((await readdir(path)).sort()).toEqual(['checkpoints', 'episodes', 'lock', 'recipe.json']);
    await run.close();
    await expect(RunDirectory.create(path, record)).rejects.toThrow(/exists and is not empty/);
  });

  it('continues with a warning if the system has no locks', async () => {
    const lock = async () => ({ type: 'unsupported', reason: 'no locks here' }) as const;
    const run = await RunDirectory.create(join(root, 'run'), record, { files: { ...nodeFiles, lock } });
    expect(await run.lock()).toBe('nothing keeps a second process from writing to run: no locks here');
  });

  it('is named with the facts in its lock', async () => {
    const taken = (note: string) => async () => ({ type: 'taken', note }) as const;
    const attempt = async (note: string) => {
      const files = { ...nodeFiles, lock: taken(note) };
      return RunDirectory.create(join(root, 'run'), record, { files }).catch((error: Error) => error.message);
    };
    const note = { pid: 17, host: 'elsewhere', since: '2026-01-02T03:04:05.000Z' };
    expect(await attempt(JSON.stringify(note))).toMatch(/by process 17 on the host elsewhere, since 2026-01-02T03:04/);
    for (const torn of ['', '{"pid":1', '[]']) expect(await attempt(torn)).toMatch(/by another process; wait/);
  });
});

describe('a checkpoint', () => {
  it('waits until the events before it are on disk', async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const files: Files = { ...nodeFiles, flush: (path) => gate.then(() => nodeFiles.flush(path)) };
    const run = await RunDirectory.create(join(root, 'run'), record, { files });
    run.emit(warning('before'));
    let filled = false;
    const written = run.writeCheckpoint(1, async (directory) => {
      filled = true;
      await writeFile(join(directory, 'weights'), '1');
    });
    for (let look = 0; look < 20; look++) await run.checkpoints(); // time in which it would fill the directory
    expect(filled).toBe(false);
    open();
    await written;
    expect(await run.latestCheckpoint()).toMatchObject({ step: 1 });
  });

  it('is not written if they cannot be flushed', async () => {
    const files: Files = { ...nodeFiles, flush: () => Promise.reject(new Error('EIO')) };
    const run = await RunDirectory.create(join(root, 'run'), record, { files });
    run.emit(warning('before'));
    await expect(run.writeCheckpoint(1, async () => undefined)).rejects.toThrow('EIO');
    expect(await run.checkpoints()).toEqual([]);
  });
});

describe('an event that could not be written whole', () => {
  it('is removed before the next', async () => {
    let full = false;
    const path = join(root, 'run', 'events.jsonl');
    const files: Files = {
      ...nodeFiles,
      append(file, content, at) {
        if (full) throw new Error('ENOSPC');
        nodeFiles.append(file, content, at);
      },
    };
    const run = await RunDirectory.create(join(root, 'run'), record, { files });
    run.emit(warning('before'));
    full = true;
    expect(() => run.emit(warning('lost'))).toThrow('ENOSPC');
    full = false;
    run.emit(warning('after'));
    expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(3);
    await writeFile(path, 'another program wrote this\n');
    expect(() => run.emit(warning('never'))).toThrow(/has 27 bytes, expected \d+: another program has changed it/);
  });
});

describe('checkpoints', () => {
  const fill = (text: string) => (directory: string) => writeFile(join(directory, 'state.json'), text);

  it('appear complete under their step, with an event', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record);
    await run.writeCheckpoint(20, fill('20'));
    await run.writeCheckpoint(100, fill('100'));
    const latest = await run.latestCheckpoint();
    expect(latest?.step).toBe(100);
    expect(await readFile(join(latest?.directory ?? '', 'state.json'), 'utf8')).toBe('100');
    expect((await run.events()).map((event) => event.type)).toEqual(['checkpoint', 'checkpoint']);
  });

  it('are kept in the requested number, and the last is always kept', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record);
    const names = () => readdir(join(run.path, 'checkpoints'));
    for (const step of [1, 2, 3]) await run.writeCheckpoint(step, fill(String(step)), { keep: 2 });
    expect(await names()).toEqual(['step-000002', 'step-000003']);
    await run.writeCheckpoint(4, fill('4'), { keep: 1, interrupted: true });
    expect(await names()).toEqual(['step-000004']);
    const failing = run.writeCheckpoint(5, () => Promise.reject(new Error('disk full')), { keep: 1 });
    await expect(failing).rejects.toThrow('disk full');
    expect(await names()).toEqual(['step-000004']);
  });

  it('of an interruption stay until the one that replaces them is complete', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record);
    await run.writeCheckpoint(4, fill('interrupted'), { keep: 1, interrupted: true });
    const text = async () => readFile(join((await run.latestCheckpoint())?.directory ?? '', 'state.json'), 'utf8');
    const failing = run.writeCheckpoint(4, () => Promise.reject(new Error('disk full')), { keep: 1 });
    await expect(failing).rejects.toThrow('disk full');
    expect(await text()).toBe('interrupted');
    await run.writeCheckpoint(4, fill('whole'), { keep: 1 });
    expect(await text()).toBe('whole');
    expect(await readdir(join(run.path, 'checkpoints'))).toEqual(['step-000004']);
  });

  it('leave no files if writing fails', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record);
    const failing = run.writeCheckpoint(20, async (directory) => {
      await fill('half')(directory);
      throw new Error('disk full');
    });
    await expect(failing).rejects.toThrow('disk full');
    expect(await readdir(join(run.path, 'checkpoints'))).toEqual([]);
    expect(await run.events()).toEqual([]);
  });

  it('restore log and episodes byte for byte', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record, { clock });
    const path = join(run.path, 'events.jsonl');
    run.emit(warning('before'));
    await run.writeStepEpisodes(1, [episode]);
    await run.writeCheckpoint(1, fill('1'));
    const whole = await readFile(path, 'utf8');
    run.emit(warning('after'));
    await run.writeStepEpisodes(2, [episode]);
    await run.writeEvaluationEpisodes(2, [episode]);
    await appendFile(path, '{"torn');
    await mkdir(join(run.path, 'checkpoints', '.tmp-step-000002-x'));

    await run.close();
    const before = await contentOf(run.path);
    const resumed = await RunDirectory.open(run.path, { clock });
    await resumed.lock();
    await resumed.rewind(await resumed.latestCheckpoint());
    resumed.emit(warning('held'));
    await resumed.recordRecipe({ source: 'math', codeHash: 'def' }, { resolved: { name: 'math' } }, 1);
    expect((await resumed.events()).map((event) => event.type)).toEqual(['warning', 'checkpoint', 'warning']);
    await resumed.close();
    expect(await contentOf(run.path)).toEqual(before); // the run did not begin, so that nothing was removed

    await resumed.rewind(await resumed.latestCheckpoint());
    await resumed.begin();
    expect(await readFile(path, 'utf8')).toBe(whole);
    expect(await readdir(join(run.path, 'episodes'))).toEqual(['step-000001.jsonl']);
    expect(await readdir(join(run.path, 'checkpoints'))).toEqual(['step-000001']);
    resumed.emit(warning('again'));
    expect((await resumed.events()).map((event) => event.type)).toEqual(['warning', 'checkpoint', 'warning']);
  });

  it('start from the beginning without a checkpoint, and refuse a log that lost lines', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record);
    run.emit(warning('lost'));
    await run.rewind(undefined);
    expect(await run.events()).toEqual([]);
    run.emit(warning('kept'));
    await run.begin();
    expect((await run.events()).map((event) => 'message' in event && event.message)).toEqual(['kept']);
    await run.writeCheckpoint(1, fill('1'));
    await writeFile(join(run.path, 'events.jsonl'), '');
    await expect(run.rewind(await run.latestCheckpoint())).rejects.toThrow(/needs \d+/);
  });

  it('name a damaged file with the position', async () => {
    const run = await RunDirectory.create(join(root, 'run'), record);
    await run.writeCheckpoint(1, fill('1'));
    await writeFile(join(run.path, 'checkpoints', 'step-000001', 'cursor.json'), '{"step":1}');
    await expect(run.rewind(await run.latestCheckpoint())).rejects.toThrow(/cursor\.json/);
  });
});

it('records that changed code was accepted', async () => {
  const run = await RunDirectory.create(join(root, 'run'), record, { clock });
  await run.recordRecipe({ source: 'math', codeHash: 'def' }, { resolved: { name: 'math' } }, 20);
  expect(run.record.recipe.codeHash).toBe('def');
  expect((await RunDirectory.open(run.path)).record.acceptedChanges).toEqual([
    { time: '2026-01-02T03:04:05.000Z', codeHash: 'abc', step: 20 },
  ]);
});
