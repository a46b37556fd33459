import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TrackedRun } from '@drmas/engine/host';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run as events } from '../../../test/fixtures/run-events.js';
import { webServer } from '../../../test/support/web-server.js';
import { measurementsOf } from './measurements.js';
import { trackio } from './trackio.js';

let path: string;
beforeEach(async () => {
  path = await mkdtemp(join(tmpdir(), 'drmas-trackio-'));
});
afterEach(() => rm(path, { recursive: true }));

const tracked = (changes: Partial<TrackedRun> = {}): TrackedRun => ({
  path,
  name: 'first',
  recipe: 'math',
  settings: { training: { steps: 3 } },
  events: [],
  acceptedChanges: 0,
  environment: {},
  ...changes,
});

interface Entry {
  readonly run_id: string;
  readonly log_id: string;
  readonly step: number;
  readonly metrics: Readonly<Record<string, number>>;
}

/** A server that answers as Trackio 0.43 was recorded to, and keeps one entry of a `log_id` as it does. */
async function trackioServer({ busy = 0, api = 1 } = {}) {
  const kept = new Map<string, Entry>();
  let refusals = busy;
  const server = await webServer(({ path: address, headers, body }, response) => {
    const say = (status: number, answer: unknown) => void response.writeHead(status).end(JSON.stringify(answer));
    if (address === '/version') return say(200, { version: '0.43.0', api_version: api, writes_paused: false });
    if (refusals-- > 0) return say(503, { error: 'Writes are paused.' });
    const token = headers['x-trackio-write-token'];
    if (token !== 'a-token-for-writing')
      return say(400, { error: `A write_token is required to log metrics, not ${token}.` });
    for (const entry of JSON.parse(body).kwargs.logs as Entry[])
      if (!kept.has(entry.log_id)) kept.set(entry.log_id, entry);
    say(200, { data: null });
  });
  return { ...server, kept };
}

const pointsOf = (entries: Iterable<Entry>) =>
  [...entries]
    .flatMap(({ step, metrics }) => Object.entries(metrics).map((point) => [...point, step].join(' ')))
    .sort();
const expected = () =>
  events
    .flatMap(measurementsOf)
    .map(({ name, step, value }) => [name, value, step].join(' '))
    .sort();

describe('--track trackio=URL', () => {
  it('sends every measurement at its step, with the settings', async () => {
    const server = await trackioServer();
    const sink = await trackio.open(tracked(), `${server.url}?write_token=a-token-for-writing`);
    for (const event of events) await sink.event(event);
    expect(pointsOf(server.kept.values())).toEqual(expected());
    expect([...server.kept.values()][0]).toMatchObject({
      project: 'math',
      run: 'first',
      config: { 'training.steps': '3' },
    });
    expect(await readFile(join(path, 'trackio.json'), 'utf8')).not.toContain('a-token');
  });

  it('goes on with the same run after an interruption, and no step is there twice', async () => {
    const server = await trackioServer();
    const environment = { TRACKIO_WRITE_TOKEN: 'a-token-for-writing' };
    const first = await trackio.open(tracked({ environment }), server.url);
    for (const event of events.slice(0, 7)) await first.event(event); // beyond the checkpoint
    const second = await trackio.open(tracked({ environment, events: events.slice(0, 5) }), server.url);
    for (const event of events.slice(5)) await second.event(event);
    expect(pointsOf(server.kept.values())).toEqual(expected());
    expect(new Set([...server.kept.values()].map(({ run_id }) => run_id)).size).toBe(1);
  });

  it('makes a new run after an accepted change', async () => {
    const server = await trackioServer();
    const address = `${server.url}?write_token=a-token-for-writing`;
    const first = await trackio.open(tracked(), address);
    for (const event of events) await first.event(event);
    const second = await trackio.open(tracked({ events: events.slice(0, 5), acceptedChanges: 1 }), address);
    for (const event of events.slice(5)) await second.event(event);
    const runs = new Set([...server.kept.values()].map(({ run_id }) => run_id));
    expect(runs.size).toBe(2);
    const [, other] = runs;
    expect(pointsOf([...server.kept.values()].filter(({ run_id }) => run_id === other))).toEqual(expected());
  });

  it('asks a busy server again', { tags: 'verify' }, async () => {
    const server = await trackioServer({ busy: 2 });
    const sink = await trackio.open(tracked(), `${server.url}?write_token=a-token-for-writing`);
    for (const event of events) await sink.event(event);
    expect(pointsOf(server.kept.values())).toEqual(expected());
  });

  it('keeps the token to itself, and says what the server does not like', async () => {
    const server = await trackioServer();
    const opened = trackio.open(tracked({ events }), `${server.url}?write_token=another-token`);
    await expect(opened).rejects.toThrow(/answered 400: .*A write_token is required to log metrics, not \[secret\]/);
    await expect(opened).rejects.not.toThrow('another-token');
  });

  it('refuses what is no such server', async () => {
    const later = await trackioServer({ api: 2 });
    await expect(trackio.open(tracked(), later.url)).rejects.toThrow(
      /version 1 of the HTTP interface: it has 2, of Trackio 0\.43\.0/,
    );
    const page = await webServer((_, response) => void response.end('<html>'));
    await expect(trackio.open(tracked(), page.url)).rejects.toThrow(/answered \/version with a text that is not JSON/);
  });
});
