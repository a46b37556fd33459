import { appendFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HubError, RecipeError } from '@drmas/engine/errors';
import type { LoadOptions, Split } from '@drmas/engine/nouns';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withEnvironment } from '../../../../test/support/environment.js';
import { COMMIT, type HubServer, hubServer } from '../../../../test/support/hub-server.js';
import { temporaryRoot, tinyDefinition, tinyRecipe } from '../../../../test/support/tiny-run.js';
import { resume, train } from '../../../runs/run/api.js';
import { mix } from '../mix.js';
import type { HubOptions } from '../task-options.js';
import { hub } from './hub-source.js';

const root = temporaryRoot();
const fixture = (name: string) =>
  readFile(fileURLToPath(new URL(`../../../../test/fixtures/${name}`, import.meta.url)));
const lines = (...rows: readonly string[]) =>
  rows.map((question, i) => `${JSON.stringify({ question, answer: String(i) })}\n`).join('');

let server: HubServer;
let home: string;
let restore: () => void;
const online = async (content: Readonly<Record<string, Buffer | string>>) => {
  server = await hubServer('openai/gsm8k', content, 'dataset');
  home = await mkdtemp(join(tmpdir(), 'drmas-data-'));
  restore = withEnvironment({ HF_HOME: home, HF_ENDPOINT: server.url, HF_HUB_OFFLINE: '', HF_HUB_CACHE: '' });
};
beforeEach(async () => {
  await online({
    'README.md': '# GSM8K',
    'dataset_infos.json': '{}',
    'main/train-00000-of-00002.parquet': await fixture('tables/gsm8k.parquet'),
    'main/train-00001-of-00002.parquet': await fixture('tables/nq.parquet'),
    'main/test-00000-of-00001.parquet': await fixture('tables/dapo.parquet'),
    'socratic/train.jsonl': lines('a', 'b'),
    'socratic/validation.jsonl': lines('v'),
  });
});
afterEach(async () => {
  restore();
  await server.close();
  await rm(home, { recursive: true, force: true });
});

const repository = () => join(home, 'hub', 'datasets--openai--gsm8k');
const load = async (split: Split = 'train', options: HubOptions = {}, more: LoadOptions = {}) => {
  const set = await hub('openai/gsm8k', options).load(split, undefined, more);
  return { ...set, ids: Array.from({ length: set.size }, (_, i) => set.at(i).id) };
};
const blobs = () => server.requests.filter((request) => request === 'GET blob').length;

describe('a data set on a hub', () => {
  it('becomes tasks from the files of its split, Parquet and JSON lines, with commit and digests', async () => {
    const notices: string[] = [];
    const { size, name, ids, origins } = await load('train', {}, { notify: (text) => void notices.push(text) });
    expect([name, size, ids[0], ids.at(-1)]).toEqual([
      ...['openai/gsm8k', 7, 'main/train-00000-of-00002.parquet:1', 'train_1'],
    ]);
    const files = ['main/train-00000-of-00002.parquet', 'main/train-00001-of-00002.parquet'];
    expect(origins).toMatchObject([{ name: 'datasets/openai/gsm8k@main', commit: COMMIT }]);
    expect(Object.keys(origins?.[0]?.files ?? {})).toEqual(files);
    expect(Object.values(origins?.[0]?.files ?? {}).every((digest) => /^[0-9a-f]{64}$/.test(digest))).toBe(true);
    expect(notices[0]).toContain(`Downloading openai/gsm8k: ${files.join(', ')}`);
    const socratic = await load('train', { config: 'socratic' });
    expect(socratic.ids).toEqual(['socratic/train.jsonl:1', 'socratic/train.jsonl:2']);
    expect((await load('test', { config: 'socratic', split: 'validation' })).ids).toEqual([
      'socratic/validation.jsonl:1',
    ]);
    expect((await load('test')).size).toBe(2);
    const halves = await Promise.all((['train', 'test'] as const).map((split) => load(split, { test: 0.5 })));
    expect(halves.map((half) => half.size).reduce((a, b) => a + b)).toBe(7);
    expect(await readdir(join(repository(), 'snapshots'))).toEqual([COMMIT]);
  });

  it('is downloaded once, and read from the cache without a network', async () => {
    const first = await load();
    const [requests, downloads] = [server.requests.length, blobs()];
    expect((await load()).ids).toEqual(first.ids);
    expect(server.requests.slice(requests)).toHaveLength(1); // the commit of the branch
    expect(blobs()).toBe(downloads);
    process.env.HF_HUB_OFFLINE = '1';
    expect((await load()).ids).toEqual(first.ids);
    const missing = load('test');
    await expect(missing).rejects.toThrow(HubError);
    await expect(missing).rejects.toThrow(/HF_HUB_OFFLINE is set; and .* lacks main\/test-00000-of-00001.parquet/);
    process.env.HF_HUB_OFFLINE = '';
    server.intercept = (_, response) => {
      response.destroy();
      return true;
    };
    const notices: string[] = [];
    expect((await load('train', {}, { notify: (text) => void notices.push(text) })).ids).toEqual(first.ids);
    expect(notices[0]).toMatch(/cannot be reached: .*; taking openai\/gsm8k as it was last downloaded/);
    await rm(home, { recursive: true });
    await expect(load()).rejects.toThrow(/cannot be reached: .*; and .* lacks revision "main"/);
  });

  it('that another program downloaded is read offline, if no part of a file is missing', async () => {
    await load();
    await rm(join(repository(), '.drmas'), { recursive: true });
    process.env.HF_HUB_OFFLINE = '1';
    expect((await load()).size).toBe(7);
    await rm(join(repository(), 'snapshots', COMMIT, 'main', 'train-00001-of-00002.parquet'));
    await expect(load()).rejects.toThrow(/lacks main\/train-00001-of-00002.parquet of openai\/gsm8k/);
  });

  it('is refused if a file in the cache has changed', async () => {
    await load('train', { config: 'socratic' });
    await appendFile(join(repository(), 'snapshots', COMMIT, 'socratic', 'train.jsonl'), lines('c'));
    await expect(load('train', { config: 'socratic' })).rejects.toThrow(/has changed since it was downloaded/);
  });

  it.each<[Split, HubOptions, RegExp]>([
    ['train', { config: 'mani' }, /has no configuration 'mani' with the split 'train': main, socratic; choose with/],
    ['test', { split: 'holdout' }, /has no split 'holdout'; its splits: test, train, validation; choose with split/],
    ['train', { files: ['main/x.parquet'] }, /there is no file main\/x.parquet; its files of data: dataset_infos.json/],
    ['train', { revision: 'v9' }, /has no revision "v9"/],
  ])(
    'without the files that are asked for is refused with those that there are (%s, %j)',
    async (split, options, message) => {
      await expect(load(split, options)).rejects.toThrow(message);
    },
  );

  it('with several configurations needs a choice, unless one is the default', async () => {
    server.files.clear();
    for (const name of ['algebra/train.csv', 'geometry/train.csv', 'all-in-one.jsonl', 'train_sft-00000-of-00001.json'])
      server.files.set(name, Buffer.from(name.endsWith('csv') ? 'question,answer\nq,1\n' : lines('q')));
    await expect(load()).rejects.toThrow(/has several configurations with the split 'train': algebra, geometry/);
    expect((await load('train', { config: 'algebra' })).size).toBe(1);
    expect((await load('train', { split: 'train_sft' })).size).toBe(1);
    expect((await load('train', { files: ['all-in-one.jsonl'] })).size).toBe(1);
  });

  it('whose list leaves its folder is refused', async () => {
    server.files.set('../../train.jsonl', Buffer.from(lines('evil')));
    await expect(load()).rejects.toThrow(/the hub's list of files has the path "..\/..\/train.jsonl"/);
  });

  it.each<[unknown, object, RegExp]>([
    ['gsm8k', {}, /^hub: dataset: expected the name of a data set, org\/name, got "gsm8k"/],
    ['../x/y', {}, /^hub: dataset/],
    ['openai/gsm8k@main', {}, /^hub: dataset/],
    ['openai/gsm8k', { revision: '../x' }, /^hub: revision: .*found "..\/x"/],
    ['openai/gsm8k', { splt: 'train' }, /^hub: .*splt/],
    ['openai/gsm8k', { test: 2 }, /^hub: test/],
  ])('with a wrong name or option is refused before any request: %s %j', (name, options, message) => {
    expect(() => hub(name as string, options)).toThrow(RecipeError);
    expect(() => hub(name as string, options)).toThrow(message);
    expect(server.requests).toEqual([]);
  });

  it('has settings that can be changed, and passes on what it was read from within a mixture', async () => {
    const source = hub('openai/gsm8k', { answer: ({ answer }) => answer });
    const { dataset, split, ...rest } = { ...source.settings };
    expect([dataset, split]).toEqual(['openai/gsm8k', null]);
    const other = source.configure?.({ ...rest, dataset, split, config: 'socratic' });
    expect((await other?.load('train'))?.size).toBe(2);
    const mixed = mix({ main: hub('openai/gsm8k'), socratic: hub('openai/gsm8k', { config: 'socratic' }) });
    expect((await mixed.load('train')).origins).toHaveLength(2);
  });
});

describe('a run on a data set of a hub', () => {
  const more = 'd'.repeat(40);
  const settings = { training: { steps: 2, tasksPerStep: 2, groupSize: 4, checkpointEvery: 1 } };
  const source = () => hub('openai/gsm8k', { config: 'socratic', test: 0.5 });
  const rows = Array.from({ length: 12 }, (_, i) => `${i}+${i + 1}`);
  const begin = async (name: string) => {
    server.files.set('socratic/train.jsonl', Buffer.from(lines(...rows)));
    const definition = tinyDefinition({ ...settings, tasks: source() });
    const stop = new AbortController();
    const run = join(root, name);
    const sinks = [
      {
        write: ({ type }: { readonly type: string }) => void (type === 'checkpoint' && stop.abort(new Error('enough'))),
      },
    ];
    await expect(train(definition, { run, signal: stop.signal, sinks, threads: 1 })).rejects.toThrow('enough');
    return { run, definition };
  };

  it('records commit and digests, and is resumed with the same data after the branch has moved', {
    tags: 'verify',
  }, async () => {
    const { run, definition } = await begin('moved');
    server.revisions.set('main', more);
    server.requests.length = 0;
    const { events } = await resume(run, definition, { threads: 1 });
    expect(server.requests).toEqual([]); // the commit is in the cache
    const started = events.find((event) => event.type === 'run.started');
    expect(started).toMatchObject({ data: [{ name: 'datasets/openai/gsm8k@main', commit: COMMIT }] });
    expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed', steps: 2 });
    const state = await readFile(join(run, 'checkpoints/step-000002/state.json'), 'utf8');
    expect(JSON.parse(state)).toMatchObject({ commits: { 'datasets/openai/gsm8k@main': COMMIT } });
    expect(tinyRecipe({ tasks: source() }).tasks.train.settings).toMatchObject({ revision: 'main' });
  });

  it('is not resumed if the files have changed, even if they fit the hub', { tags: 'verify' }, async () => {
    const { run, definition } = await begin('changed');
    await rm(home, { recursive: true });
    server.files.set('socratic/train.jsonl', Buffer.from(lines(...rows.toReversed())));
    const resumed = resume(run, definition, { threads: 1 });
    await expect(resumed).rejects.toThrow(/socratic\/train.jsonl of datasets\/openai\/gsm8k@main has changed since/);
  });
});
