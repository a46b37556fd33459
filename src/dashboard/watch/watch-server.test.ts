import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, mkdtemp, readdir, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { RunError } from '@drmas/engine/errors';
import { nodeFiles } from '@drmas/engine/platform';
import type { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stamped, step } from '../../../test/fixtures/run-events.js';
import { drmas } from '../../../test/support/command-line.js';
import { hostile, recordRun } from '../../../test/support/recorded-run.js';
import { writeAblation } from '../../method/store/ablation-record.js';
import { readEvents, readRows } from '../../method/store/event-log.js';
import { EpisodeIndexes } from './episodes/episode-index.js';
import { followFolder, followRuns } from './event-feed.js';
import { LogTail } from './log-tail.js';
import { RunCatalog } from './run-catalog.js';
import { TalkService } from './talk/talk-service.js';
import { watchApp } from './watch-server.js';

describe('a line that no text can hold', () => {
  it('is refused by file and line before it is in memory', { tags: 'verify' }, async () => {
    const root = await mkdtemp(join(tmpdir(), 'drmas-line-'));
    const [plain, packed] = [join(root, 'events.jsonl'), join(root, 'events.jsonl.gz')];
    await writeFile(plain, '{"type":"run.started"}\n');
    await truncate(plain, 3e9); // zeros, which take no room
    const ten = gzipSync(Buffer.alloc(1e7));
    await writeFile(packed, Buffer.concat([gzipSync('{}\n'), ...Array.from({ length: 300 }, () => ten)]));
    const tail = new LogTail(plain);
    expect((await tail.read()).lines).toHaveLength(1);
    const tooLong = /events\.jsonl(\.gz)?(:2|, line 2)?: a line is (too long|longer than 536 MB)/;
    const read: (() => Promise<unknown>)[] = [
      () => readEvents(nodeFiles, plain),
      () => readRows(plain, () => {}),
      () => readRows(packed, () => {}),
      () => tail.read(),
    ];
    for (const reads of read) await expect(reads()).rejects.toThrow(tooLong);
    await rm(root, { recursive: true });
  });
});

describe('watch app', () => {
  let root: string;
  let page: string;
  const ending = new AbortController();
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-watch-'));
    page = join(root, 'page');
    await mkdir(page);
    await writeFile(join(page, 'index.html'), '<!doctype html>the page');
    await writeFile(join(page, 'secret.txt'), 'no type, not served');
    for (const name of ['first', 'sweep/a-seed-1', 'sweep/b-seed-1']) {
      await mkdir(join(root, 'runs', name, '..'), { recursive: true });
      const run = await recordRun(join(root, 'runs', name), { text: hostile });
      await run.close();
    }
    await writeAblation(join(root, 'runs', 'sweep'), {
      version: 1,
      recipe: { source: 'math', codeHash: 'abc', overrides: [] },
      vary: [{ key: 'seed', values: ['1', '2'] }],
      seeds: 1,
      baseline: '1',
    });
    await mkdir(join(root, 'runs', 'no-run'));
  });
  afterAll(async () => {
    ending.abort();
    await rm(root, { recursive: true });
  });

  it('does not wait for pipes and devices in runs of others', async () => {
    const folder = join(root, 'of-others');
    const instead = async (run: string, file: string, kind: 'pipe' | 'device') => {
      const recorded = await recordRun(join(folder, run), { text: hostile });
      await recorded.close();
      const path = join(folder, run, file);
      await rm(path);
      if (kind === 'pipe') execFileSync('mkfifo', [path]);
      else await symlink('/dev/zero', path);
      return path;
    };
    for (const kind of ['pipe', 'device'] as const) {
      await instead(`record-${kind}`, 'recipe.json', kind);
      const log = await instead(`log-${kind}`, 'events.jsonl', kind);
      expect(await new LogTail(log).read()).toMatchObject({ lines: [] });
      await expect(readEvents(nodeFiles, log)).rejects.toThrow('not a regular file');
      const [file = ''] = await readdir(join(folder, `log-${kind}`, 'episodes'));
      const episodes = await instead(`episodes-${kind}`, join('episodes', file), kind);
      await expect(readRows(episodes, () => {})).rejects.toThrow('not a regular file');
      await expect(new EpisodeIndexes().of(episodes)).rejects.toThrow('not a regular file');
    }
    const names = (await new RunCatalog(folder).refresh()).map(({ name }) => name);
    expect(names.sort()).toEqual(['episodes', 'log', 'record'].flatMap((file) => [`${file}-device`, `${file}-pipe`]));
  });

  const appOf = (): Hono =>
    watchApp({
      catalog: new RunCatalog(join(root, 'runs')),
      talk: new TalkService(),
      page,
      signal: ending.signal,
    });
  const at = (path: string) => `http://127.0.0.1:7373${path}`;

  /** The messages of a stream up to the first of a type. */
  async function heard(app: Hono, path: string, last: string) {
    const response = await app.request(at(path));
    const messages: { event: string; data: Record<string, unknown> }[] = [];
    let rest = '';
    const decoder = new TextDecoder();
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
      const pieces = (rest + decoder.decode(part, { stream: true })).split('\n\n');
      rest = pieces.pop() ?? '';
      for (const piece of pieces) {
        const event = /^event: (.*)$/m.exec(piece)?.[1] ?? '';
        messages.push({ event, data: JSON.parse(/^data: (.*)$/m.exec(piece)?.[1] ?? 'null') });
        if (event === last) return messages;
      }
    }
    return messages;
  }

  describe('the server of the dashboard', () => {
    it('serves the page under a policy that lets nothing but its own script run', async () => {
      const response = await appOf().request(at('/'));
      expect(await response.text()).toContain('the page');
      const policy = response.headers.get('content-security-policy');
      expect(policy).toContain("default-src 'none'; script-src 'self'");
      expect(policy).not.toContain('unsafe');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    });

    it('serves no other file, whatever the path', async () => {
      for (const path of [
        '/secret.txt',
        '/../runs/first/recipe.json',
        '/%2e%2e/package.json',
        '/..%2fpackage.json',
        '/x.js',
      ])
        expect((await appOf().request(at(path))).status, path).toBe(404);
    });

    it('lists runs and ablations, and says what is no run', async () => {
      const [message] = await heard(appOf(), '/api/stream', 'list');
      const { body, headers } = await appOf().request('/api/stream');
      await body?.cancel();
      expect(headers.has('transfer-encoding')).toBe(false); // clients of HTTP 1.0 cannot read chunks
      const runs = message?.data.runs as { name: string; state: string; ablation: string | null }[];
      expect(runs.map(({ name, state, ablation }) => [name, state, ablation]).sort()).toEqual([
        ['first', 'completed', null],
        ['no-run', 'unreadable', null],
        ['sweep/a-seed-1', 'completed', 'sweep'],
        ['sweep/b-seed-1', 'completed', 'sweep'],
      ]);
      const members = ['sweep/a-seed-1', 'sweep/b-seed-1'].map((name) => ({ name, variant: '1', seed: 1 }));
      expect(message?.data.ablations).toEqual([{ name: 'sweep', variants: ['1', '2'], baseline: '1', runs: members }]);
    });

    it('tells all events of a run, and nothing of what is no run of the folder', async () => {
      const messages = await heard(appOf(), '/api/stream?run=first&run=..%2Fpage&run=%2Fetc', 'files');
      expect(messages.map(({ event }) => event)).toEqual(['run', 'events', 'files']);
      expect(messages[1]?.data).toMatchObject({ name: 'first', reset: true, more: false });
      expect(messages[1]?.data.events).toHaveLength(9);
      expect(messages[2]?.data.files).toMatchObject([
        { name: 'evaluation-000000' },
        { name: 'step-000001' },
        { name: 'step-000002' },
      ]);
    });

    it('needs a token before it listens to other machines, and a folder of runs', async () => {
      expect(await drmas(['watch', root, '--host', '0.0.0.0'])).toMatchObject({
        code: 2,
        err: expect.stringContaining('--token'),
      });
      expect(await drmas(['watch', join(root, 'nowhere')])).toMatchObject({
        code: 2,
        err: expect.stringContaining('nowhere'),
      });
    });
  });

  describe('following runs', () => {
    it('hears what is appended, and begins again when a log was taken back', async () => {
      const path = join(root, 'growing', 'run');
      await mkdir(join(root, 'growing'));
      await recordRun(path);
      const log = join(path, 'events.jsonl');
      const { size } = await stat(log);
      const gone = new AbortController();
      const events: [reset: boolean, count: number][] = [];
      const unread: string[] = [];
      for await (const message of followRuns(new RunCatalog(join(root, 'growing')), ['run'], gone.signal)) {
        if (message.type !== 'events') continue;
        if (message.data.events.some((event) => event.type === 'warning' && event.code === 'files.changed')) continue;
        for (const event of message.data.events)
          if (event.type === 'warning' && event.code === 'lines.unread') unread.push(event.message);
        events.push([message.data.reset, message.data.events.length]);
        if (events.length === 1) await appendFile(log, `${JSON.stringify(stamped(step(3)))}\nnot an event\n\n{"torn`);
        if (events.length === 2) await truncate(log, size);
        if (events.length === 4) gone.abort();
      }
      expect(events).toEqual([
        [true, 9],
        [false, 2],
        [true, 0],
        [false, 9],
      ]);
      expect(unread).toEqual([expect.stringMatching(/^events\.jsonl:11: .*got "not an event"; this page leaves out/)]);
    });

    it('leaves the files of a run as they are', async () => {
      const before = await readdir(join(root, 'runs', 'first'));
      const times = await Promise.all(
        before.map(async (name) => (await stat(join(root, 'runs', 'first', name))).mtimeMs),
      );
      await heard(appOf(), '/api/stream?run=first', 'files');
      expect(await readdir(join(root, 'runs', 'first'))).toEqual(before);
      const after = await Promise.all(
        before.map(async (name) => (await stat(join(root, 'runs', 'first', name))).mtimeMs),
      );
      expect(after).toEqual(times);
    });

    it('says that a run is being prepared until it has a folder', async () => {
      const catalog = new RunCatalog(undefined);
      const gone = new AbortController();
      const lists: unknown[] = [];
      for await (const { type, data } of followFolder(catalog, gone.signal)) {
        if (type !== 'list') continue;
        lists.push([data.preparing, data.folder, data.runs.map(({ name }) => name)]);
        catalog.show(join(root, 'runs', 'first'));
        if (lists.length === 2) gone.abort();
      }
      expect(lists).toEqual([
        [true, '', []],
        [false, 'first', ['first']],
      ]);
    });

    it('says so when the folder has gone', async () => {
      await mkdir(join(root, 'short-lived'));
      const catalog = new RunCatalog(join(root, 'short-lived'));
      expect(await catalog.refresh()).toEqual([]);
      await rm(join(root, 'short-lived'), { recursive: true });
      await expect(catalog.refresh()).rejects.toThrow(RunError);
    });
  });
});
