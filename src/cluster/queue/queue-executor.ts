/** Plays episodes on a queue: workers take them. If a worker disappears, another one plays its episodes again. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, RecipeError } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import { commandText, isLoopback, listen } from '@drmas/engine/platform';
import type { Recipe, RecipeCode } from '../../method/recipe.js';
import { groupsByEpisode, type RolloutContext, type RolloutExecutor } from '../../teams/rollout.js';
import { AnnouncementError, KEY_VARIABLE, type QueueKey, queueKey } from './queue-key.js';
import { connectRedis, queueModules } from './redis.js';
import { RolloutServer } from './rollout-server.js';
import { ANNOUNCED_SECONDS, announcementKey, queueOf } from './wire.js';

/** The run looks this often for jobs that Redis lost, and renews its announcement. */
const RENEW_MS = (ANNOUNCED_SECONDS * 1000) / 4;
/** After so many looks at which no worker plays, drmas prints how to start one. */
const LONELY_LOOKS = 2;
/** A worker whose attempt failed tries its episode again after this time. */
const AGAIN_MS = 200;
/** A run that is over waits this long for Redis to remove its entries. */
const REMOVE_MS = 3000;

export interface QueueOptions {
  readonly code: RecipeCode;
  readonly rollout: NonNullable<Recipe['rollout']>;
  readonly recipe: string;
  readonly gateway: Recipe['gateway'];
  readonly host: Pick<Host, 'notify' | 'warn'>;
}

/**
 * An executor whose episodes are jobs in Redis. An episode's tokens follow from its content (seed, step, task, sample,
 * prompt), so that an episode that is played again has the same bits on any worker.
 * @throws RecipeError when Redis does not answer or refuses what a queue needs, another run uses the queue, the port is
 *   in use, or there is no key
 */
export async function queueExecutor(
  context: RolloutContext,
  { code, rollout, recipe, gateway, host }: QueueOptions,
): Promise<RolloutExecutor> {
  const { url = '', queue: name, leaseSeconds, publicUrl } = rollout;
  const modules = await queueModules();
  const queueSecret = await queueKey();
  const run = randomUUID();
  const warnOnce = onceEach((message) => host.warn('queue.redis', message));
  const server = new RolloutServer({
    context,
    code,
    recipe,
    leaseSeconds,
    key: queueSecret,
    run,
    gateway,
    onIgnored: (message) => host.warn('gateway.ignored', message),
    onFault: (message) => host.warn('queue.episode', message),
  });
  const redis = await connectRedis(modules, url);
  const listening = await listen(server, rollout).catch((error: unknown) => {
    redis.disconnect();
    throw new RecipeError(String(error), 'rollout.port');
  });
  const announced = { run, url: publicUrl ?? listening.url, ...code };
  const place = announcementKey(name);
  const text = queueSecret.sign(name, announced);
  const announce = () => redis.set(place, text, 'EX', ANNOUNCED_SECONDS);
  const jobs = new modules.Queue(queueOf(name, run), { connection: redis });
  jobs.on('error', () => {}); // the client reconnects by itself
  const refused = async (message: string, path: string): Promise<never> => {
    redis.disconnect();
    await listening.close();
    throw new RecipeError(message, path);
  };
  const isFirst = async () => {
    await jobs.waitUntilReady();
    await jobs.count();
    return (await redis.set(place, text, 'EX', ANNOUNCED_SECONDS, 'NX')) !== null;
  };
  const unusable = (error: unknown) =>
    refused(`Redis at ${url} refuses what a queue needs: ${messageOf(error)}`, 'rollout.url');
  if (!(await isFirst().catch(unusable))) {
    const other = await otherRun(queueSecret, name, () => redis.get(place));
    if (other !== undefined) {
      await jobs.obliterate().catch(() => {}); // it has nothing but its settings
      await refused(`another run uses the queue '${name}' at ${url}${other}`, 'rollout.queue');
    }
    warnOnce(`${place} in Redis held no announcement of a run, and was overwritten`);
    await announce();
  }
  if (!isLoopback(new URL(url).hostname) && !process.env.REDIS_PASSWORD)
    host.notify(`Redis at ${url} has no password here: set requirepass there, and REDIS_PASSWORD here and for workers`);
  const add = (job: string) =>
    jobs.add(
      'episode',
      {},
      {
        jobId: job,
        attempts: Number.MAX_SAFE_INTEGER,
        backoff: { type: 'fixed', delay: AGAIN_MS },
        removeOnComplete: true,
        removeOnFail: true,
      },
    );
  // The announcement is renewed while the run lives. Jobs that Redis lost or that cannot be read are added again.
  let lonely = 0;
  const renew = async () => {
    const other = await announcedByOther();
    if (other !== undefined) {
      // Else both would take the workers from each other, and no episode longer than RENEW_MS would end.
      warnOnce(
        `another run took the queue '${name}' while this one was paused: ${other.url}. This run goes on when that one ` +
          'has ended; rollout.queue gives runs a queue each',
      );
      return;
    }
    await announce();
    await Promise.all(server.open.map(restore));
    // A worker holds the lock of an episode that it plays. Redis drops the locks of a worker that died.
    const locks = server.open.map((job) => `${jobs.toKey(job)}:lock`);
    if (locks.length > 0) lonely = (await redis.exists(...locks)) > 0 ? 0 : lonely + 1;
    if (lonely !== LONELY_LOOKS) return;
    host.notify(
      `no worker plays for this run: ${commandText(['npx', 'drmas', 'serve', 'worker', code.source, '--url', url, '--queue', name])}; ` +
        `on another machine ${KEY_VARIABLE} must hold the key that this run has from ${queueSecret.place}`,
    );
  };
  /** The announcement of another run with this key. */
  const announcedByOther = async () => {
    const present = await redis.get(place).catch(() => null); // a value of another type is overwritten
    if (present === null || present === text) return undefined;
    try {
      return queueSecret.read(name, present);
    } catch {
      return undefined;
    }
  };
  const restore = async (job: string) => {
    const state = await stateOf(job).catch((error: unknown) => {
      warnOnce(`a job of the queue '${name}' in Redis cannot be read, and is added again: ${messageOf(error)}`);
    });
    if (state !== undefined && state !== 'unknown') return;
    await redis.del(jobs.toKey(job)); // a job in no list, which Redis may have dropped, waits for nobody
    await add(job);
  };
  const stateOf = async (job: string) => (await jobs.getJob(job))?.getState();
  const report = (error: unknown) =>
    warnOnce(`the queue '${name}' in Redis is damaged, and is made again: ${messageOf(error)}`);
  /** Makes the queue of this run again, if values of another type stand in the places of its own. */
  const remake = async () => {
    for await (const keys of redis.scanStream({ match: `${jobs.toKey('')}*` }))
      if (keys.length > 0) await redis.del(keys);
    await Promise.all(server.open.map(add));
  };
  let busy = false;
  const renewing = setInterval(async () => {
    if (busy) return;
    busy = true;
    await renew().catch(async (error: unknown) => {
      report(error);
      await remake().catch(() => {}); // at the next time
    });
    busy = false;
  }, RENEW_MS).unref();

  /** Removes the run's announcement and queue. What remains is only in Redis. */
  const removeEntries = async () => {
    if ((await redis.get(place).catch(() => null)) === text) await redis.del(place).catch(() => {});
    await jobs.obliterate({ force: true }).catch(() => {});
  };

  let played = 0;
  const { watch: _, ...unwatched } = context; // no code of a team runs in this process
  return {
    playGroups: groupsByEpisode(unwatched, async ({ team: _, signal, listener: __, ...request }) => {
      const job = `e${played++}`;
      const offered = server.offer(job, request, signal);
      // Nothing waits for Redis: while it is away, its client keeps the commands.
      void add(job).catch((error: unknown) => {
        if (server.open.includes(job)) report(error); // it is added again when the queue is made again
      });
      try {
        return { ...(await offered), task: request.task };
      } catch (error) {
        void jobs.remove(job).catch(() => {}); // a job in progress ends by itself
        throw error;
      }
    }),
    async close() {
      clearInterval(renewing);
      server.end(new Error('the run is over'));
      await listening.close();
      await Promise.race([removeEntries(), sleep(REMOVE_MS, undefined, { ref: false })]);
      redis.disconnect(); // before the queue is closed, which has no connection of its own
      await jobs.close();
    },
  };
}

/** The end of a message about the run that announced itself; undefined if the value in Redis is no announcement. */
async function otherRun(key: QueueKey, queue: string, read: () => Promise<string | null>): Promise<string | undefined> {
  try {
    const text = await read();
    return text === null ? '' : `: ${key.read(queue, text).url}`;
  } catch (error) {
    if (error instanceof AnnouncementError && error.isSigned) return '; it has another key';
    return undefined;
  }
}

function onceEach(act: (message: string) => void): (message: string) => void {
  const messages = new Set<string>();
  return (message) => {
    if (messages.has(message)) return;
    messages.add(message);
    act(message);
  };
}
