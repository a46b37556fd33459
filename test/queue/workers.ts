/** Workers as processes of their own, and runs whose episodes they play. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { messageOf } from '../../src/base/core/errors.js';

export const REDIS = process.env.DRMAS_TEST_REDIS ?? 'redis://127.0.0.1:6379';
export const recipe = fileURLToPath(new URL('team.ts', import.meta.url));
const program = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

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
  const words = ['--import', 'tsx', program, 'serve', 'worker', '--url', REDIS, '--queue', queue];
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
