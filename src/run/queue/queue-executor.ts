/** Plays episodes on a queue: workers take them, and what a worker has not finished another one plays again. */
import { randomBytes, randomUUID } from 'node:crypto';
import { RecipeError } from '../../core/errors.js';
import type { Host } from '../../core/host.js';
import { listen } from '../../platform/listen.js';
import type { Recipe, RecipeCode } from '../../recipe/recipe.js';
import { groupsByEpisode, type RolloutExecutor } from '../../rollout/executor.js';
import type { RolloutContext } from '../../rollout/rollout-context.js';
import { Desk } from './desk.js';
import { connectRedis, queueModules, redisOptions } from './redis.js';
import { ANNOUNCED_SECONDS, type Announcement, announcementKey, queueOf } from './wire.js';

/** Without a worker for so long, a person hears how to start one. */
const LONELY_MS = 5000;
/** A worker that met an accident takes its episode up again after this time. */
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
 * prompt), so that one that is played again has the same bits, whoever plays it.
 * @throws RecipeError when there is no Redis, another run uses the queue, or the port is taken
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
  const desk = new Desk({ context, code, recipe, leaseSeconds, secret, gateway, onIgnored });
  const listening = await listen(desk.app, rollout).catch((error: unknown) => {
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
  jobs.on('error', () => {}); // the client tries again by itself
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
  // The announcement is renewed while the run lives; jobs that Redis has lost, with its memory, are added again.
  const renew = async () => {
    await redis.set(key, text, 'EX', ANNOUNCED_SECONDS);
    const counts = await jobs.getJobCounts('waiting', 'active', 'delayed');
    const there = Object.values(counts).reduce((sum, count) => sum + count, 0);
    if (there >= desk.open.length) return;
    for (const job of desk.open) if ((await jobs.getJob(job)) === undefined) await add(job);
  };
  const renewing = setInterval(() => void renew().catch(() => {}), (ANNOUNCED_SECONDS * 1000) / 4).unref();
  const lonely = setTimeout(() => {
    if (desk.workers === 0)
      host.notify(`no worker plays for this run yet: drmas worker ${code.source} --url ${url} --queue ${name}`);
  }, LONELY_MS).unref();

  let played = 0;
  const { watch: _, ...unwatched } = context; // no code of a team runs in this process
  return {
    playGroups: groupsByEpisode(unwatched, async ({ team: _, signal, observer: __, ...request }) => {
      const job = `e${played++}`;
      const offered = desk.offer(job, request, signal);
      offered.catch(() => {}); // when Redis fails before anybody waits for it
      try {
        await add(job);
        return { ...(await offered), task: request.task };
      } catch (error) {
        await jobs.remove(job).catch(() => {}); // one that is being played ends by itself
        throw error;
      }
    }),
    async close() {
      clearInterval(renewing);
      clearTimeout(lonely);
      desk.end(new Error('the run is over'));
      if ((await redis.get(key).catch(() => null)) === text) await redis.del(key).catch(() => {});
      await jobs.obliterate({ force: true }).catch(() => {}); // what is left of it lies in Redis alone
      await jobs.close();
      redis.disconnect();
      await listening.close();
    },
  };
}
