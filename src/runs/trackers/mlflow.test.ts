import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import type { TrackedRun } from '@drmas/engine/host';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run as events } from '../../../test/fixtures/run-events.js';
import { freePort } from '../../../test/support/server-process.js';
import { webServer } from '../../../test/support/web-server.js';
import { requestedTrackers } from './index.js';
import { measurementsOf } from './measurements.js';
import { acceptedName, mlflow } from './mlflow.js';

let path: string;
beforeEach(async () => {
  path = await mkdtemp(join(tmpdir(), 'drmas-mlflow-'));
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

interface Metric {
  readonly key: string;
  readonly step: number;
  readonly value: number;
  readonly run: string;
}

/** A server that answers as mlflow 3 does, and records the requests. */
async function mlflowServer() {
  const metrics: Metric[] = [];
  const deleted = new Set<string>();
  const gone = new Set<string>();
  let runs = 0;
  const server = await webServer(({ path: address, body }, response) => {
    const say = (status: number, answer: unknown) => void response.writeHead(status).end(JSON.stringify(answer));
    const given = body === '' ? {} : JSON.parse(body);
    if (address.includes('get-by-name')) return say(404, { error_code: 'RESOURCE_DOES_NOT_EXIST' });
    if (address.includes('experiments/create')) return say(200, { experiment_id: '7' });
    const run = address.includes('runs/create') ? `run-${++runs}` : (given.run_id ?? address.split('run_id=')[1]);
    if (gone.has(run)) return say(404, { error_code: 'RESOURCE_DOES_NOT_EXIST' });
    if (deleted.has(run) && body !== '') return say(400, { error_code: 'INVALID_PARAMETER_VALUE' });
    const lifecycle_stage = deleted.has(run) ? 'deleted' : 'active';
    metrics.push(...(given.metrics ?? []).map((metric: Metric) => ({ ...metric, run })));
    const latest = new Map(metrics.filter((metric) => metric.run === run).map((metric) => [metric.key, metric]));
    return say(200, { run: { info: { run_id: run, lifecycle_stage }, data: { metrics: [...latest.values()] } } });
  });
  return { ...server, metrics, deleted, gone };
}

const pointsOf = (metrics: readonly Omit<Metric, 'run'>[]) =>
  metrics.map(({ key, step, value }) => `${key} ${step} ${value}`).sort();
const expected = () =>
  pointsOf(events.flatMap(measurementsOf).map(({ name, step, value }) => ({ key: name, step, value })));

describe('--track mlflow=URL', () => {
  it('makes a run with settings, every measurement at its step, and its end', async () => {
    const server = await mlflowServer();
    const sink = await mlflow.open(tracked(), server.url);
    for (const event of events) await sink.event(event);
    expect(pointsOf(server.metrics)).toEqual(expected());
    const sent = server.requests.map(
      ({ path: address, body }) => [address.replace('/api/2.0/mlflow/', ''), body] as const,
    );
    expect(JSON.parse(sent.find(([address]) => address === 'runs/create')?.[1] ?? '')).toMatchObject({
      experiment_id: '7',
      run_name: 'first',
    });
    expect(sent.some(([, body]) => body.includes('"params":[{"key":"training.steps","value":"3"}]'))).toBe(true);
    expect(sent.at(-1)).toEqual(['runs/update', expect.stringContaining('FINISHED')]);
  });

  it('goes on with the same run after an interruption, and sends nothing twice', async () => {
    const server = await mlflowServer();
    const first = await mlflow.open(tracked(), server.url);
    for (const event of events.slice(0, 7)) await first.event(event); // beyond the checkpoint
    const second = await mlflow.open(tracked({ events: events.slice(0, 5) }), server.url);
    for (const event of events.slice(5)) await second.event(event);
    expect(pointsOf(server.metrics)).toEqual(expected());
    expect(server.requests.filter(({ path: address }) => address.endsWith('runs/create'))).toHaveLength(1);
  });

  it.each(['deleted', 'gone'] as const)('makes a new run with all steps if the run there is %s', async (state) => {
    const server = await mlflowServer();
    const first = await mlflow.open(tracked(), server.url);
    for (const event of events.slice(0, 5)) await first.event(event);
    server[state].add('run-1');
    const second = await mlflow.open(tracked({ events: events.slice(0, 5) }), server.url);
    for (const event of events.slice(5)) await second.event(event);
    expect(pointsOf(server.metrics.filter(({ run }) => run === 'run-2'))).toEqual(expected());
    expect(JSON.parse(await readFile(join(path, 'mlflow.json'), 'utf8')).runId).toBe('run-2');
  });

  it('ends a run as failed that does not begin, and no other', async () => {
    const server = await mlflowServer();
    const statuses = () =>
      server.requests.flatMap(({ path: address, body }) =>
        address.endsWith('runs/update') ? [JSON.parse(body).status as string] : [],
      );
    const refused = await mlflow.open(tracked(), server.url);
    await refused.event({ type: 'preparing', message: 'downloads a model', time: '2026-01-31T09:45:01Z', version: 1 });
    await refused.close?.();
    expect(statuses()).toEqual(['FAILED']);
    const first = await mlflow.open(tracked(), server.url);
    for (const event of events) await first.event(event);
    await first.close?.();
    expect(statuses()).toEqual(['FAILED', 'RUNNING', 'FINISHED']);
  });

  it('makes a new run after an accepted change, and goes on with that one', async () => {
    const server = await mlflowServer();
    const first = await mlflow.open(tracked(), server.url);
    for (const event of events) await first.event(event);
    const changes = { events: events.slice(0, 5), acceptedChanges: 1 };
    await mlflow.open(tracked(changes), server.url);
    const third = await mlflow.open(tracked(changes), server.url);
    for (const event of events.slice(5)) await third.event(event);
    expect(new Set(server.metrics.map(({ run }) => run))).toEqual(new Set(['run-1', 'run-2']));
    expect(pointsOf(server.metrics.filter(({ run }) => run === 'run-2'))).toEqual(expected());
  });

  it('keeps keys to itself', async () => {
    const token = 'a-token-of-many-letters';
    const server = await webServer(({ headers }, response) => void response.writeHead(403).end(headers.authorization));
    const opened = mlflow.open(tracked({ environment: { MLFLOW_TRACKING_TOKEN: token } }), server.url);
    await expect(opened).rejects.toThrow(/answered 403/);
    await expect(opened).rejects.not.toThrow(token);
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${token}`);
    const other = await mlflowServer();
    await mlflow.open(tracked(), other.url.replace('//', '//me:secret-word@'));
    expect(other.requests[0]?.headers.authorization).toBe(`Basic ${btoa('me:secret-word')}`);
    expect(await readFile(join(path, 'mlflow.json'), 'utf8')).not.toContain('secret-word');
  });

  it('asks again where the connection is cut, and makes no second run', { tags: 'verify' }, async () => {
    const server = await mlflowServer();
    let requests = 0;
    // On a busy machine a server whose workers were killed accepts the request and closes the connection.
    const flaky = await webServer(async ({ path: address, method, body, headers }, response) => {
      if (++requests % 3 === 1 && !address.endsWith('/create')) return void response.destroy();
      const answer = await fetch(`${server.url}${address}`, {
        method,
        headers: { 'content-type': headers['content-type'] ?? '' },
        ...(method === 'GET' ? {} : { body }),
      });
      response.writeHead(answer.status).end(await answer.text());
    });
    const sink = await mlflow.open(tracked(), flaky.url);
    for (const event of events) await sink.event(event);
    expect(pointsOf(server.metrics)).toEqual(expected());
    expect(server.requests.filter(({ path: address }) => address.endsWith('runs/create'))).toHaveLength(1);
  });

  it('says that a server cannot be reached', async () => {
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const reason = new RegExp(`${nobody} cannot be reached: fetch failed \\(.*ECONNREFUSED`);
    await expect(mlflow.open(tracked(), nobody)).rejects.toThrow(reason);
  });

  it.each([
    [
      '<html>',
      /answered \/api\/2\.0\/mlflow\/experiments\/get-by-name\?experiment_name=math with a text that is not JSON/,
    ],
    ['{}', /does not answer \/api\/2\.0\/mlflow\/experiments\/get-by-name.* as MLflow does: experiment: /],
  ])('refuses a server that answers %s', async (answer, message) => {
    const server = await webServer((_, response) => void response.end(answer));
    const opened = mlflow.open(tracked(), server.url.replace('//', '//me:secret-word@'));
    await expect(opened).rejects.toThrow(RunError);
    await expect(opened).rejects.toThrow(server.url);
    await expect(opened).rejects.toThrow(message);
  });

  it('refuses a password with a % that encodes nothing, and does not print it', async () => {
    const opened = mlflow.open(tracked(), 'http://me:50%off-secret@host:5000');
    await expect(opened).rejects.toThrow(RunError);
    await expect(opened).rejects.toThrow(/the MLflow server at http:\/\/host:5000 are malformed: write %25 for a %/);
    await expect(opened).rejects.not.toThrow('off-secret');
  });
});

describe('what is typed after --track', () => {
  it.each([
    ['tensorbord', /there is no tracker 'tensorbord'; expected tensorboard, mlflow=URL, trackio=URL, otel/],
    ['tensorboard=x', /expected tensorboard, got 'tensorboard=x'/],
    ['mlflow', /expected mlflow=URL/],
    ['mlflow=ftp://me:word@host', /got 'mlflow=ftp:\/\/host'/],
    ['trackio=ftp://host?write_token=word', /got 'trackio=ftp:\/\/host\?write_token=\.\.\.'/],
    ['trackio=ftp://host?a=b&key=word', /got 'trackio=ftp:\/\/host\?a=...&key=...'/],
    ['trackio=ftp://host?write_token=w@rd', /got 'trackio=ftp:\/\/'/],
    ['mlflow=me:word@host:5000', /got 'mlflow=host:5000'/],
    ['mlflow=htp://me:wo/rd@host:5000', /got 'mlflow=htp:\/\/host:5000'/],
    ['mlflow=ftp://me:w@rd@host', /got 'mlflow=ftp:\/\/host'/],
    ['mlflow=http://me:1/word@host', /got 'mlflow=http:\/\/host'/],
    ['mlflow:http://me:word@host', /there is no tracker 'host';/],
    ['http://me:wo=rd@host', /there is no tracker 'http:\/\/host';/],
    ['mlfow=http://me:word@host', /there is no tracker 'mlfow';/],
  ])('%s is refused', (word, message) => {
    expect(() => requestedTrackers([word])).toThrow(message);
  });
});

describe('names that MLflow accepts', () => {
  // Its own rules: the characters, the length, and that the path of a file is as it would be written.
  const accepts = (name: string) =>
    /^[\w\-. /]+$/.test(name) && name.length <= 250 && name.split('/').every((part) => !['', '.', '..'].includes(part));

  it('are made of all names, and differ where these differ', () => {
    const odd = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom(
        '',
        '.',
        '..',
        'a/../b',
        '/a',
        'a//b',
        'a/',
        'é',
        'è',
        '\u202e',
        'x'.repeat(251),
        'x'.repeat(252),
      ),
    );
    fc.assert(
      fc.property(odd, odd, (one, two) => {
        const names = [one, two].map((name) => acceptedName(`train/parts/${name}`));
        for (const name of names) expect(accepts(name), name).toBe(true);
        expect(names[0] === names[1]).toBe(one === two);
      }),
    );
  });

  it('stay as they are if MLflow accepts them', () => {
    for (const name of ['train/reward/mean', 'agents/solver/health/groups/allRight', 'a-b_c.d e'])
      expect(acceptedName(name)).toBe(name);
  });
});
