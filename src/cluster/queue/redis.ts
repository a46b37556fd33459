/** BullMQ and its Redis client. Both are optional packages for rollouts on a queue. */

import { messageOf, RecipeError } from '@drmas/engine/errors';
import { excerpt } from '@drmas/engine/host';
import type { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';

export interface QueueModules {
  readonly Queue: typeof Queue;
  readonly Worker: typeof Worker;
  readonly Redis: typeof Redis;
}

/** @throws RecipeError naming the packages to install */
export async function queueModules(): Promise<QueueModules> {
  try {
    // Not together: bundlers accept that a package is absent only for an `await import` in a `try`.
    const { Queue, Worker } = await import('bullmq');
    const { Redis } = await import('ioredis');
    return { Queue, Worker, Redis };
  } catch (error) {
    throw new RecipeError(`a queue needs \`npm install bullmq ioredis\`: ${messageOf(error)}`, 'rollout.type');
  }
}

export function redisOptions(url: string) {
  const { hostname, port, username, protocol, pathname } = new URL(url);
  const { REDIS_PASSWORD: password } = process.env;
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 6379 : Number(port),
    db: Number(pathname.slice(1) || 0),
    maxRetriesPerRequest: null as null, // commands wait until Redis is back
    // After a failover this server is a replica: a new connection finds the new primary, and 2 sends the command again.
    reconnectOnError: (error: Error) => (error.message.includes('READONLY') ? (2 as const) : false),
    ...(username === '' ? {} : { username }),
    ...(password ? { password } : {}),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
}

/** @throws RecipeError, without the address: it may have a password */
function checkAddress(url: string): void {
  const { protocol, password } = URL.canParse(url) ? new URL(url) : { protocol: '', password: '' };
  if (protocol !== 'redis:' && protocol !== 'rediss:')
    throw new RecipeError('expected an address such as redis://127.0.0.1:6379', 'rollout.url');
  if (password !== '')
    throw new RecipeError('a password belongs into REDIS_PASSWORD of the environment', 'rollout.url');
}

/** Time for a connection, and for the first answers on it, in milliseconds. */
const CONNECT_MS = 5000;

/**
 * @throws RecipeError when no server answers, it is not Redis or wants another password, or this machine does not trust
 *   its certificate
 */
export async function connectRedis({ Redis }: QueueModules, url: string): Promise<Redis> {
  checkAddress(url);
  const options = redisOptions(url);
  const redis = new Redis({ ...options, lazyConnect: true, connectTimeout: CONNECT_MS, retryStrategy: () => null });
  let cause: unknown; // the commands say only that the connection is closed
  redis.on('error', (error) => {
    cause = error;
  });
  const giveUp = setTimeout(() => {
    cause ??= new Error(`no answer in ${CONNECT_MS / 1000} s`);
    redis.disconnect();
  }, CONNECT_MS);
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    redis.disconnect();
    const reason = messageOf(cause ?? error);
    const fault = /^(NOAUTH|WRONGPASS)/.test(reason)
      ? `Redis at ${url} wants its password in REDIS_PASSWORD: ${excerpt(reason, 60)}`
      : `there is no Redis at ${url}: ${reason}`;
    throw new RecipeError(fault, 'rollout.url');
  } finally {
    clearTimeout(giveUp);
  }
  redis.options.retryStrategy = (times: number) => Math.min(100 * times, 2000);
  return redis;
}
