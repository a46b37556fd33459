/** A run with real trackers, interrupted and resumed, read back with the trackers' own packages. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { RunEvent } from '@drmas/engine/events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { wandb } from '../../examples/wandb.js';
import { resume, train } from '../../src/runs/run/api.js';
import { measurementsOf } from '../../src/runs/trackers/measurements.js';
import { withEnvironment } from '../support/environment.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { freePort, ServerProcess } from '../support/server-process.js';
import { temporaryRoot, tinyDefinition } from '../support/tiny-run.js';

const TOKEN = 'a-token-for-writing';

const environment = await pythonEnvironment({
  name: 'trackers',
  requirements: new URL('requirements.txt', import.meta.url),
  what: 'TensorBoard, MLflow, Trackio and wandb (1 GB)',
});
const available = !('unavailable' in environment);
if (!available) console.log(`SKIPPED: the tests with real trackers, because ${environment.unavailable}`);

const root = temporaryRoot();
const run = join(root, 'first');
const servers: ServerProcess[] = [];
const address = { mlflow: '', trackio: '' };

beforeAll(async () => {
  if (!available) return;
  const programs = dirname(environment.python);
  const port = await freePort();
  address.mlflow = `http://127.0.0.1:${port}`;
  // One worker: several have a parent that kills those which do not answer within seconds, as on a busy machine.
  const words = ['server', '--workers', '1', '--host', '127.0.0.1', '--port', String(port)];
  const store = ['--backend-store-uri', `sqlite:///${join(root, 'mlflow.db')}`, '--artifacts-destination', root];
  const mlflow = new ServerProcess(join(programs, 'mlflow'), [...words, ...store], {
    MLFLOW_SERVER_ENABLE_JOB_EXECUTION: 'false', // processes of its own that nothing here needs
  });
  const at = await freePort();
  address.trackio = `http://127.0.0.1:${at}`;
  const trackio = new ServerProcess(join(programs, 'trackio'), ['show'], {
    TRACKIO_DIR: join(root, 'trackio'),
    TRACKIO_WRITE_TOKEN: TOKEN,
    GRADIO_SERVER_PORT: String(at),
    HF_HUB_OFFLINE: '1',
    BROWSER: 'true',
    PYTHONUNBUFFERED: '1',
  });
  servers.push(mlflow, trackio);
  await Promise.all([mlflow.ready(`${address.mlflow}/health`), trackio.ready(`${address.trackio}/version`)]);
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));

type Points = Readonly<Record<string, readonly (readonly [step: number, value: number])[]>>;

/** The expected measurements in trackers: each measurement of the log at its step. */
function expectedOf(events: readonly RunEvent[]): Points {
  const points = new Map<string, [number, number][]>();
  for (const { name, step, value } of events.flatMap(measurementsOf))
    points.set(name, [...(points.get(name) ?? []), [step, value]]);
  return Object.fromEntries(points);
}

/** Without times, which are others when a step is played again; everything else repeats bit for bit. */
const inOrder = (points: Points): Points =>
  Object.fromEntries(
    Object.entries(points)
      .filter(([name]) => !/seconds/i.test(name))
      .map(([name, each]) => [name, each.toSorted(([a], [b]) => a - b)]),
  );
const rounded = (points: Points): Points =>
  Object.fromEntries(Object.entries(points).map(([name, each]) => [name, each.map(([s, v]) => [s, Math.fround(v)])]));

it.skipIf(!available)('is read by tensorboard, mlflow and trackio as the log has it, once', async () => {
  if (!available) return;
  const track = ['tensorboard', `mlflow=${address.mlflow}`, `trackio=${address.trackio}?write_token=${TOKEN}`];
  const notices: string[] = [];
  const options = { run, track, threads: 1, onNotice: (message: string) => notices.push(message) };
  const controller = new AbortController();
  const stop = {
    write: (event: RunEvent) => event.type === 'step' && event.step === 3 && controller.abort(new Error('enough')),
  };
  await expect(train(tinyDefinition(), { ...options, sinks: [stop], signal: controller.signal })).rejects.toThrow();
  await resume(run, tinyDefinition(), options);
  // Once more from step 2: the run reports steps that the trackers have already.
  const { events } = await resume(run, tinyDefinition(), { ...options, from: 'step-000002' });
  expect(notices).toEqual([]);

  const expected = inOrder(expectedOf(events));
  expect(Object.keys(expected).length).toBeGreaterThan(50);
  const { runId } = JSON.parse(await readFile(join(run, 'mlflow.json'), 'utf8'));
  const script = fileURLToPath(new URL('read-back.py', import.meta.url));
  const words = [script, run, address.mlflow, runId];
  const { stdout } = await promisify(execFile)(environment.python, words, { maxBuffer: 2 ** 26 });
  const read = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  expect(inOrder(read.tensorboard)).toEqual(rounded(expected));
  expect(inOrder(read.mlflow)).toEqual(expected);
  expect(read.run).toMatchObject({ status: 'FINISHED', params: { 'training.steps': '4' } });

  const place = { project: 'tiny', run: 'first' };
  const body = JSON.stringify(place);
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${address.trackio}/api/get_logs`, { method: 'POST', headers, body });
  const { data } = (await answer.json()) as { data: readonly ({ readonly step: number } & Record<string, unknown>)[] };
  const logged = new Map<string, [number, number][]>();
  for (const { step, timestamp: _, ...values } of data)
    for (const [name, value] of Object.entries(values))
      if (typeof value === 'number') logged.set(name, [...(logged.get(name) ?? []), [step, value]]);
  expect(inOrder(Object.fromEntries(logged))).toEqual(expected);
});

it.skipIf(!available)('is read back from an offline run of wandb, which the example wrote', async () => {
  if (!available) return;
  const restore = withEnvironment({
    WANDB_MODE: 'offline',
    WANDB_DIR: root,
    WANDB_SILENT: 'true',
    WANDB_PYTHON: environment.python,
  });
  const notices: string[] = [];
  const place = join(root, 'second');
  const onNotice = (message: string) => notices.push(message);
  const { events } = await train(tinyDefinition({ use: [wandb] }), { run: place, threads: 1, onNotice });
  restore();
  expect(notices.filter((notice) => notice.includes('wandb'))).toEqual([]);
  const script = fileURLToPath(new URL('read-back.py', import.meta.url));
  const { stdout } = await promisify(execFile)(environment.python, [script, join(root, 'wandb')], {
    maxBuffer: 2 ** 26,
  });
  const read = JSON.parse(stdout) as readonly Readonly<Record<string, unknown>>[];
  const logged = (name: string) =>
    read.flatMap(({ step, [name]: value }) => (value === undefined ? [] : [[step, value]]));
  const expected = expectedOf(events);
  for (const name of ['train.reward.mean', 'evaluation.averageAtK', 'train.agents.solver.gradientNorm'])
    expect(logged(name)).toEqual(expected[name.replaceAll('.', '/').replace('train/agents', 'agents')]);
  const sync = await promisify(execFile)(join(dirname(environment.python), 'wandb'), ['sync', '--dry-run'], {
    cwd: root,
    env: { ...process.env, WANDB_DIR: root },
  });
  expect(sync.stdout + sync.stderr).toMatch(/Would sync 1 run/);
});
