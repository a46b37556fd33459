/** Plays episodes on a queue: workers take them. If a worker disappears, another one plays its episodes again. */
import { randomBytes, randomUUID } from 'node:crypto';
import { RecipeError } from '../../base/errors.js';
import type { Host } from '../../base/host.js';
import { listen } from '../../base/platform.js';
import type { Recipe, RecipeCode } from '../../method/recipe.js';
import type { RolloutContext } from '../../teams/rollout.js';
import { groupsByEpisode, type RolloutExecutor } from '../../teams/rollout.js';
import { connectRedis, queueModules, redisOptions } from './redis.js';
import { RolloutServer } from './rollout-server.js';
import { ANNOUNCED_SECONDS, type Announcement, announcementKey, queueOf } from './wire.js';

/** After this time without a worker, drmas prints how to start one. */
const LONELY_MS = 5000;
/** A worker whose attempt failed tries its episode again after this time. */
const AGAIN_MS = 200;

export interface QueueOptions {
  readonly code: RecipeCode;
  readonly rollout: NonNullable<Recipe['rollout']>;
  /** The digest of the resolved recipe. */
  readonly recipe: string;
  readonly gateway: Recipe['gateway'];
  readonly host: Pick<Host, 'notify' | 'warn'>;
}

/**
 * An executor whose episodes are jobs in Redis. An episode's tokens follow from its content (seed, step, task, sample,
 * prompt), so that an episode that is played again has the same bits on any worker.
 * @throws RecipeError when Redis does not answer, another run uses the queue, or the port is in use
 */
export async function queueExecutor(
  context: RolloutContext,
  { code, rollout, recipe, gateway, host }: QueueOptions,
): Promise<RolloutExecutor> {
  const { url = '', queue: name, leaseSeconds, publicUrl } = rollout;
  const modules = await queueModules();
  const redis = await connectRedis(modules, url);
  const run = randomUUID();
  const secret = randomBytes(32).toString('hex');
  const onIgnored = (message: string) => host.warn('gateway.ignored', message);
  const server = new RolloutServer({ context, code, recipe, leaseSeconds, secret, gateway, onIgnored });
  const listening = await listen(server, rollout).catch((error: unknown) => {
    redis.disconnect();
    throw new RecipeError(String(error), 'rollout.port');
  });
  const announced: Announcement = { run, url: publicUrl ?? listening.url, source: code.source, secret };
  const key = announcementKey(name);
  const text = JSON.stringify(announced);
  const taken = (await redis.set(key, text, 'EX', ANNOUNCED_SECONDS, 'NX')) === null;
  if (taken) {
    redis.disconnect();
    await listening.close();
    throw new RecipeError(`another run uses the queue '${name}' at ${url}`, 'rollout.queue');
  }
  const jobs = new modules.Queue(queueOf(name, run), { connection: redisOptions(url) });
  jobs.on('error', () => {}); // the client reconnects by itself
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
  // The announcement is renewed while the run lives. Jobs that Redis lost in a restart are added again.
  const renew = async () => {
    await redis.set(key, text, 'EX', ANNOUNCED_SECONDS);
    const counts = await jobs.getJobCounts('waiting', 'active', 'delayed');
    const there = Object.values(counts).reduce((sum, count) => sum + count, 0);
    if (there >= server.open.length) return;
    for (const job of server.open) if ((await jobs.getJob(job)) === undefined) await add(job);
  };
  const renewing = setInterval(() => void renew().catch(() => {}), (ANNOUNCED_SECONDS * 1000) / 4).unref();
  const lonely = setTimeout(() => {
    if (server.workers === 0)
      host.notify(`no worker plays for this run yet: drmas serve worker ${code.source} --url ${url} --queue ${name}`);
  }, LONELY_MS).unref();

  let played = 0;
  const { watch: _, ...unwatched } = context; // no code of a team runs in this process
  return {
    playGroups: groupsByEpisode(unwatched, async ({ team: _, signal, listener: __, ...request }) => {
      const job = `e${played++}`;
      const offered = server.offer(job, request, signal);
      offered.catch(() => {}); // Redis may fail before the promise is awaited
      try {
        await add(job);
        return { ...(await offered), task: request.task };
      } catch (error) {
        await jobs.remove(job).catch(() => {}); // a job in progress ends by itself
        throw error;
      }
    }),
    async close() {
      clearInterval(renewing);
      clearTimeout(lonely);
      server.end(new Error('the run is over'));
      if ((await redis.get(key).catch(() => null)) === text) await redis.del(key).catch(() => {});
      await jobs.obliterate({ force: true }).catch(() => {}); // the remaining entries are only in Redis
      await jobs.close();
      redis.disconnect();
      await listening.close();
    },
  };
}
