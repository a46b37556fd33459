/** Workers as processes of their own, and runs whose episodes they play. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { Redis } from 'ioredis';
import { bytesOf } from '../support/time-and-chance.js';
import { temporaryRoot } from '../support/tiny-run.js';

export const REDIS = process.env.DRMAS_TEST_REDIS ?? 'redis://127.0.0.1:6379';
export const recipe = fileURLToPath(new URL('team.ts', import.meta.url));
/** The folder whose recipes the workers play. */
const folder = fileURLToPath(new URL('.', import.meta.url));
process.env.DRMAS_QUEUE_KEY = bytesOf(`queue of ${process.pid}`, 32).toString('hex'); // of the workers and of the runs
export const program = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

/** The reason why there is no Redis. Undefined if there is one. */
export async function noRedis(): Promise<string | undefined> {
  const redis = new Redis(REDIS, { lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => {});
  try {
    await redis.connect();
    await redis.ping();
    return undefined;
  } catch (error) {
    return `there is no Redis at ${REDIS}: ${messageOf(error)}`;
  } finally {
    redis.disconnect();
  }
}

export interface WorkerOptions {
  readonly queue: string;
  readonly concurrency: number;
  readonly toolMs: number;
}

const started = new Set<ChildProcess>();

export function startWorker({ queue, concurrency, toolMs }: WorkerOptions): ChildProcess {
  const words = ['--import', 'tsx', program, 'serve', 'worker', '--url', REDIS, '--queue', queue, '--recipes', folder];
  const worker = spawn(process.execPath, [...words, '--concurrency', `${concurrency}`], {
    env: { ...process.env, DRMAS_TEST_TOOL_MS: `${toolMs}` },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  started.add(worker);
  return worker;
}

/** Ends the workers of tests that ran out of time, which end none themselves. */
export const killAll = () => Promise.all([...started].map(kill));

export async function kill(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  const ended = once(worker, 'exit');
  worker.kill('SIGKILL');
  await ended;
}

const runs = temporaryRoot();

/** Trains in a process of its own. */
export async function train(
  name: string,
  words: readonly string[],
  toolMs: number,
  file = recipe,
): Promise<{ run: string; events: RunEvent[] }> {
  const run = join(runs, name);
  const all = ['--import', 'tsx', program, 'train', file, '--run', run, '--threads', '1', '--json', ...words];
  const child = spawn(process.execPath, all, { env: { ...process.env, DRMAS_TEST_TOOL_MS: `${toolMs}` } });
  let [out, err] = ['', ''];
  child.stdout.on('data', (part) => {
    out += part;
  });
  child.stderr.on('data', (part) => {
    err += part;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the run ended with ${code}: ${err}`);
  return {
    run,
    events: out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as RunEvent),
  };
}

export const onQueue = (queue: string) => [
  ...['--set', 'rollout.type=queue', '--set', `rollout.url=${REDIS}`, '--set', `rollout.queue=${queue}`],
  ...['--set', 'rollout.leaseSeconds=1'],
];

/** The events, without times. */
export async function comparable({ run, events }: { run: string; events: RunEvent[] }) {
  const lasting = events.filter(({ type }) => type === 'step' || type === 'evaluation');
  const folder = join(run, 'episodes');
  const files = (await readdir(folder)).sort();
  return {
    events: lasting.map(({ time: _, ...event }) => ({ ...event, seconds: 0, phaseSeconds: 0 })),
    episodes: await Promise.all(files.map(async (file) => [file, await readFile(join(folder, file), 'utf8')])),
  };
}
