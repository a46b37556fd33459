// @module-tag verify
/** A damaged file of a run is noticed when it is read, named, and not used. `verify` finds all damage. */

import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CheckpointError, RunError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { cacheDirectory, nodeFiles } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it } from 'vitest';
import { followRuns } from '../../src/dashboard/watch/event-feed.js';
import { RunCatalog } from '../../src/dashboard/watch/run-catalog.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { verifyRun } from '../../src/method/store/verify-run.js';
import { evaluate, resume, train } from '../../src/runs/run/api.js';
import { drmas } from '../support/command-line.js';
import { deadline } from '../support/time-and-chance.js';
import { eventsOf, filesOf, temporaryRoot, tinyDefinition } from '../support/tiny-run.js';

const root = temporaryRoot();
const definition = tinyDefinition({ policies: { solver: { kl: { coefficient: 0.1 } } } });
let whole: RunDirectory;
let stopped: string;

beforeAll(async () => {
  const path = join(root, 'whole');
  await train(definition, { run: path, threads: 1 });
  whole = await RunDirectory.open(path);
  stopped = join(root, 'stopped');
  const controller = new AbortController();
  const write = (event: RunEvent) => event.type === 'step' && event.step === 3 && controller.abort(new Error('enough'));
  const training = train(definition, { run: stopped, threads: 1, sinks: [{ write }], signal: controller.signal });
  await expect(training).rejects.toThrow('enough');
});

const copyOf = async (run: string) => {
  const path = join(await mkdtemp(join(root, 'copy-')), 'run');
  await cp(run, path, { recursive: true });
  return path;
};

type Damage = (text: Buffer) => Buffer;
const flipped: Damage = (bytes) => {
  const copy = Buffer.from(bytes);
  copy[copy.length - 1] = (copy.at(-1) ?? 0) ^ 1;
  return copy;
};
const cut: Damage = (bytes) => bytes.subarray(0, bytes.length >> 1);
const zeros: Damage = (bytes) => Buffer.from(bytes).fill(0, bytes.length >> 1, (bytes.length >> 1) + 64);
const edited =
  (from: string | RegExp, to: string): Damage =>
  (bytes) => {
    const text = bytes.toString();
    expect(text).toMatch(from);
    return Buffer.from(text.replace(from, to));
  };

async function damaged(run: string, file: string, damage: Damage | 'gone'): Promise<string> {
  const path = await copyOf(run);
  const at = join(path, file);
  if (damage === 'gone') await rm(at);
  else await writeFile(at, damage(await readFile(at)));
  return path;
}

const last = 'checkpoints/step-000003';
const changes: [string, string, Damage | 'gone'][] = [
  ['a bit of weights', `${last}/solver/model.safetensors`, flipped],
  ['half of the weights', `${last}/solver/model.safetensors`, cut],
  ['zeros in the moments', `${last}/verifier/optimizer.safetensors`, zeros],
  ['missing moments', `${last}/verifier/optimizer.safetensors`, 'gone'],
  ['another step in state.json', `${last}/state.json`, edited('"step":3', '"step":4')],
  ['another step in cursor.json', `${last}/cursor.json`, edited('"step":3', '"step":2')],
  ['another number of bytes in cursor.json', `${last}/cursor.json`, edited('"bytes":', '"bytes":9')],
  ['a digest', `${last}/digests.json`, edited(/"sha256":"./, '"sha256":"g')],
  ['no digests', `${last}/digests.json`, 'gone'],
  ['a reference', 'references/solver/model.safetensors', flipped],
  ['a missing file of a reference', 'references/solver/config.json', 'gone'],
  ['no digests of a reference', 'references/solver/digests.json', 'gone'],
  ['a longer name in the first event', 'events.jsonl', edited('"tiny"', '"tiny5"')],
  ['another digit in an old event', 'events.jsonl', edited(/"sampled":\d/, '"sampled":0')],
  ['a shorter log', 'events.jsonl', cut],
  ['no log', 'events.jsonl', 'gone'],
  ['a line of digests', 'digests.jsonl', edited(/"bytes":\d/, '"bytes":7')],
];

/** The contents of all files of a run but its lock, by path. */
async function contentOf(path: string): Promise<Record<string, string>> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name !== 'lock');
  const content = files.map(async ({ parentPath, name }) => {
    const at = join(parentPath, name);
    return [at, (await readFile(at)).toString('base64')] as const;
  });
  return Object.fromEntries(await Promise.all(content));
}

describe('resume refuses', () => {
  it.each(changes)('%s', async (_, file, damage) => {
    const path = await damaged(stopped, file, damage);
    const before = await contentOf(path);
    const error = await resume(path, definition, { threads: 1 }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(file.endsWith('.jsonl') ? RunError : CheckpointError);
    expect((error as Error).message).toContain(join(path, file.replace(/cursor\.json$/, '')));
    expect(await contentOf(path)).toEqual(before);
    const parts = await verifyRun(path);
    expect(parts.filter(({ state }) => state === 'damaged').map((part) => part.path)).toEqual(
      expect.arrayContaining([file.startsWith(last) ? last : file.split('/').slice(0, 2).join('/')]),
    );
  });
});

it('an older checkpoint is gone on from when it is named, and the run ends as if nothing had happened', async () => {
  const path = await damaged(stopped, `${last}/solver/model.safetensors`, flipped);
  await expect(resume(path, definition)).rejects.toThrow(
    `resume from an older checkpoint with npx drmas resume ${path} --checkpoint step-000002`,
  );
  await expect(resume(path, definition, { from: 'step-000001' })).rejects.toThrow(
    "has no checkpoint 'step-000001'; it has step-000002, step-000003",
  );
  await resume(path, definition, { threads: 1, from: 'step-000002' });
  const run = await RunDirectory.open(path);
  expect(await eventsOf(run)).toEqual(await eventsOf(whole));
  expect(await filesOf(run)).toEqual(await filesOf(whole));
  expect((await verifyRun(path)).filter(({ state }) => state !== 'whole')).toEqual([]);
});

it('an evaluation reads no damaged weights, and needs no optimiser', async () => {
  const options = { recipe: definition, threads: 1, tasks: 1, samples: 1 };
  for (const damage of [flipped, zeros, cut]) {
    const path = await damaged(whole.path, 'checkpoints/step-000004/solver/model.safetensors', damage);
    await expect(evaluate(path, options)).rejects.toThrow(CheckpointError);
    const to = join(path, 'exported');
    expect(await drmas(['export', path, '--agent', 'solver', '--to', to])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/model\.safetensors (is not what was written|has \d+ bytes)/),
    });
  }
  const path = await damaged(whole.path, 'checkpoints/step-000004/solver/optimizer.safetensors', flipped);
  expect((await evaluate(path, options)).tasks).toBe(1);
});

it('an evaluation, an export and a server refuse a checkpoint without its digests', async () => {
  const seal = 'checkpoints/step-000004/digests.json';
  const path = await damaged(whole.path, seal, 'gone');
  const missing = `${join(path, seal)} is missing`;
  await expect(evaluate(path, { recipe: definition, threads: 1 })).rejects.toThrow(new CheckpointError(missing));
  for (const words of [
    ['export', path, '--agent', 'solver', '--to', join(path, 'exported')],
    ['serve', path],
  ])
    expect(await drmas(words)).toMatchObject({ code: 2, err: expect.stringContaining(missing) });
});

describe('drmas doctor verify', () => {
  it('finds a whole run whole', async () => {
    expect(await drmas(['doctor', 'verify', whole.path])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^\d+ whole, 0 unchecked, 0 damaged\n$/),
    });
  });

  it('ends with 1 for any change to any file of it', async () => {
    const files = (await readdir(whole.path, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile() && entry.name !== 'lock')
      .map((entry) => join(entry.parentPath, entry.name).slice(whole.path.length + 1));
    expect(files.length).toBeGreaterThan(20);
    const path = await copyOf(whole.path);
    for (const file of files) {
      const at = join(path, file);
      const content = await readFile(at);
      for (const damage of [flipped, cut, 'gone'] as const) {
        if (damage === 'gone') await rm(at);
        else await writeFile(at, damage(content));
        const states = (await verifyRun(path)).map(({ state }) => state);
        expect(states, `${file} ${damage}`).toContain('damaged');
      }
      await writeFile(at, content);
    }
    await writeFile(join(path, 'events.jsonl'), '');
    expect((await drmas(['doctor', 'verify', path])).code).toBe(1);
  }, 120_000);

  it('has an output for programs', async () => {
    const path = await damaged(whole.path, 'episodes/step-000001.jsonl', flipped);
    const { out } = await drmas(['doctor', 'verify', path, '--json']);
    const { parts } = JSON.parse(out) as { parts: { path: string; state: string; why?: string }[] };
    expect(parts.filter(({ state }) => state === 'damaged')).toEqual([
      {
        path: 'episodes/step-000001.jsonl',
        state: 'damaged',
        why: 'is not what was written (its SHA-256 differs)',
      },
    ]);
    expect(await drmas(['doctor', 'verify', root])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/is not a run/),
    });
  });
});

describe('report, inspect and watch say in one line that files differ', () => {
  const line =
    /files of \S+ differ from what was written: (events|episodes\/step-000001)\.jsonl.*; npx drmas doctor verify \S+ lists them/;

  it.each([
    ['a changed episode', 'episodes/step-000001.jsonl', edited(/"team":\d/, '"team":7')],
    [
      'a shortened log',
      'events.jsonl',
      (bytes: Buffer) => bytes.subarray(0, bytes.lastIndexOf('\n', bytes.length - 2) + 1),
    ],
  ])('%s', async (_, file, damage) => {
    const path = await damaged(whole.path, file, damage);
    const to = join(path, 'report.html');
    expect(await drmas(['report', path, '--to', to])).toMatchObject({ code: 0, err: expect.stringMatching(line) });
    expect(await readFile(to, 'utf8')).toMatch(line);
    expect(await drmas(['inspect', path])).toMatchObject({ code: 0, err: expect.stringMatching(line) });
    const catalog = new RunCatalog(path);
    for await (const message of followRuns(catalog, ['run'], deadline(10_000))) {
      if (message.type !== 'events' || message.data.reset) continue;
      expect(message.data.events).toMatchObject([{ type: 'warning', message: expect.stringMatching(line) }]);
      return;
    }
    expect.unreachable('no warning came');
  });

  it('and nothing about whole files', async () => {
    const to = join(root, 'report.html');
    expect(await drmas(['report', whole.path, '--to', to])).toMatchObject({ code: 0, err: '' });
    expect(await drmas(['inspect', whole.path])).toMatchObject({ code: 0, err: '' });
  });
});

it('verify lists what a killed process left behind, and the next resume removes it', async () => {
  const path = await copyOf(stopped);
  const leftovers = ['.tmp-a', 'checkpoints/.tmp-step-000004', 'references/.tmp-solver'];
  for (const name of leftovers) {
    await mkdir(join(path, name));
    await writeFile(join(path, name, 'model.safetensors'), 'half');
  }
  const { code, out } = await drmas(['doctor', 'verify', path]);
  expect(code).toBe(0);
  for (const name of leftovers) expect(out).toContain(`unchecked  ${name}: was not written to its end`);
  await resume(path, definition, { threads: 1 });
  expect((await drmas(['doctor', 'verify', path])).out).not.toContain('.tmp-');
});

it('changed episodes of the past are said and do not stop a run, which learns nothing from them', async () => {
  const path = await damaged(stopped, 'episodes/step-000001.jsonl', flipped);
  const notices: string[] = [];
  await resume(path, definition, { threads: 1, onNotice: (notice) => notices.push(notice) });
  expect(notices).toEqual([expect.stringMatching(/step-000001\.jsonl is not what was written .*continues/)]);
});

it('a run of a version without digests goes on, and says that it is not checked', async () => {
  const path = await copyOf(stopped);
  for (const name of await readdir(join(path, 'checkpoints'))) {
    const directory = join(path, 'checkpoints', name);
    const { step, interrupted, events } = JSON.parse(await readFile(join(directory, 'cursor.json'), 'utf8'));
    const { bytes, lines } = events;
    await writeFile(join(directory, 'cursor.json'), JSON.stringify({ step, events: { bytes, lines }, interrupted }));
    await rm(join(directory, 'digests.json'));
  }
  await rm(join(path, 'digests.jsonl'));
  await rm(join(path, 'references', 'solver', 'digests.json'));
  const { digest, ...record } = JSON.parse(await readFile(join(path, 'recipe.json'), 'utf8'));
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  await writeFile(join(path, 'recipe.json'), JSON.stringify(record));
  const states = new Set((await verifyRun(path)).map(({ state }) => state));
  expect(states).toEqual(new Set(['unchecked']));
  const notices: string[] = [];
  const onNotice = (notice: string) => void notices.push(notice);
  await evaluate(path, { recipe: definition, threads: 1, tasks: 1, samples: 1, onNotice });
  expect(notices).toEqual([expect.stringMatching(/step-000003 was written by a version without digests/)]);
  const to = join(path, 'exported');
  expect(await drmas(['export', path, '--agent', 'solver', '--to', to])).toMatchObject({
    code: 0,
    err: expect.stringMatching(/step-000003 was written by a version without digests/),
  });
  notices.length = 0;
  await resume(path, definition, { threads: 1, onNotice });
  expect(notices).toEqual([expect.stringMatching(/step-000003 was written by a version without digests/)]);
  expect(await filesOf(await RunDirectory.open(path))).toMatchObject(await filesOf(whole));
});

it('a damaged warm start is trained again', async () => {
  const store = join(cacheDirectory(), 'warmstarts');
  const [entry = ''] = await readdir(store);
  const weights = join(store, entry, 'solver', 'model.safetensors');
  for (const damage of [flipped, cut]) {
    await writeFile(weights, damage(await readFile(weights)));
    const notices: string[] = [];
    const path = join(await mkdtemp(join(root, 'anew-')), 'run');
    await train(definition, { run: path, threads: 1, onNotice: (notice) => notices.push(notice) });
    expect(notices[0]).toMatch(
      /^A cached warm start cannot be used and is trained again: .*solver\/model\.safetensors /,
    );
    expect(await filesOf(await RunDirectory.open(path))).toEqual(await filesOf(whole));
    expect(await readdir(store)).toEqual([entry]);
  }
  await rename(join(store, entry, 'digests.json'), join(store, entry, 'old'));
  const notices: string[] = [];
  const run = join(await mkdtemp(join(root, 'anew-')), 'run');
  await train(definition, { run, threads: 1, onNotice: (notice) => notices.push(notice) });
  expect(notices[0]).toMatch(/written by a version without digests/);
  expect(await nodeFiles.exists(weights)).toBe(true);
});
