/** A worker: plays episodes for the run on the queue, with the tools of its machine and the run's policies. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pRetry, { AbortError } from 'p-retry';
import { BackendError, messageOf, RecipeError, RunError } from '../../base/errors.js';
import type { Host } from '../../base/host.js';
import { packageVersion } from '../../base/platform.js';
import type { Generation, Utterance } from '../../engine/contract.js';
import { type OpenGateway, openGateway } from '../../gateway/index.js';
import { rolloutContext } from '../../gateway/rollouts.js';
import { loadRecipe } from '../../method/recipe-files.js';
import type { Team } from '../../teams/index.js';
import { playEpisode, readable, remoteSpeakers } from '../../teams/rollout.js';
import { connectRedis, type QueueModules, queueModules, redisOptions } from './redis.js';
import {
  type Announcement,
  announcement,
  announcementKey,
  packed,
  queueOf,
  type Registered,
  unpacked,
  type WorkerRequestPath,
  type WorkerRequests,
} from './wire.js';

const LOOK_MS = 500;

export interface WorkerRequest {
  /** The address of Redis. */
  readonly url: string;
  readonly queue: string;
  /** The recipe's file on this machine; by default the path that the run names. */
  readonly recipe?: string | undefined;
  /** Concurrent episodes. */
  readonly concurrency: number;
}

/** Plays until the host's signal fires. Then its open episodes end, and other workers play them again. */
export async function runWorker(request: WorkerRequest, { signal, notify }: Host): Promise<void> {
  const modules = await queueModules();
  const redis = await connectRedis(modules, request.url);
  const look = async (): Promise<Announcement | undefined> => {
    const text = await redis.get(announcementKey(request.queue));
    const read = announcement.safeParse(text === null ? undefined : JSON.parse(text));
    return read.success ? read.data : undefined;
  };
  try {
    notify(`waiting for a run on the queue '${request.queue}' at ${request.url}`);
    let refused = '';
    while (!signal.aborted) {
      const run = await look();
      if (run !== undefined && run.run !== refused) {
        try {
          await playFor(run, request, modules, look, signal, notify);
        } catch (error) {
          if (error instanceof RecipeError) throw error;
          refused = run.run;
          notify(`not playing for the run at ${run.url}: ${messageOf(error)}`);
        }
      }
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    redis.disconnect();
  }
}

/**
 * @throws RunError when the run refuses this worker; RecipeError when the recipe cannot be loaded here, or the port of
 * the gateway is in use
 */
async function playFor(
  run: Announcement,
  { url, queue, recipe: source = run.source, concurrency }: WorkerRequest,
  { Worker }: QueueModules,
  look: () => Promise<Announcement | undefined>,
  signal: AbortSignal,
  notify: (message: string) => void,
): Promise<void> {
  let codeHash = '';
  const { definition } = await loadRecipe(source, (hash) => {
    codeHash = hash;
  });
  const { team } = definition.input;
  const over = new AbortController();
  setMaxListeners(0, over.signal); // every episode listens to it
  const register = { codeHash, version: packageVersion() };
  const given = await askRun(run.url, run.secret, 'register', register, signal);
  notify(`playing ${concurrency} episodes at once for ${run.url}, recipe ${given.recipe.slice(0, 12)}`);
  const warn = (message: string) => {
    const warning = { about: 'gateway', message } as const;
    askRun(run.url, given.secret, 'warning', warning, over.signal).catch(() => {});
  };
  const gateway = given.gateway && (await openGateway(given.gateway, { maxTurns: given.settings.maxTurns, warn }));
  const player = new EpisodePlayer(run.url, given, team, gateway);
  const worker = new Worker(queueOf(queue, run.run), (job) => player.play(job.id ?? '', over.signal), {
    connection: redisOptions(url),
    concurrency,
    lockDuration: 1000 * given.leaseSeconds,
    stalledInterval: 500 * given.leaseSeconds,
    maxStalledCount: Number.MAX_SAFE_INTEGER,
  });
  worker.on('error', () => {}); // the client reconnects by itself
  try {
    while (!signal.aborted && (await look().catch(() => run))?.run === run.run)
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
  } finally {
    over.abort(new RunError('the run has ended, or this worker stops'));
    await worker.close(true);
    await gateway?.close();
  }
}

/** Plays single episodes of a run. */
class EpisodePlayer {
  readonly #url: string;
  readonly #given: Registered;
  readonly #team: Team;
  readonly #gateway: OpenGateway | undefined;

  constructor(url: string, given: Registered, team: Team, gateway: OpenGateway | undefined) {
    this.#url = url;
    this.#given = given;
    this.#team = team;
    this.#gateway = gateway;
  }

  /** Rejects when the run does not answer; the episode is then played again if the run still needs it. */
  async play(job: string, signal: AbortSignal): Promise<void> {
    const gone = new AbortController();
    const until = AbortSignal.any([signal, gone.signal]);
    const ask = <P extends WorkerRequestPath>(path: P, body: WorkerRequests[P]['ask'], by: AbortSignal) =>
      askRun(this.#url, this.#given.secret, path, body, by).catch((error: unknown) => {
        if (error instanceof EpisodeGoneError) gone.abort(error);
        throw error;
      });
    try {
      const request = await ask('take', { job }, until);
      const { policies, ...settings } = this.#given.settings;
      const speakers = remoteSpeakers(policies, (policy, spoken, by = until) =>
        ask('call', { job, policy, request: spoken }, AbortSignal.any([by, until])).then(
          (answer) => answer as Generation & Utterance,
        ),
      );
      const context = rolloutContext(settings, speakers, {
        gateway: this.#gateway,
        warn: (message) => void ask('warning', { about: 'team', message }, until).catch(() => {}),
      });
      const episode = await playEpisode(context, { ...request, team: this.#team, signal: until });
      await handIn(episode, (played) => ask('over', { job, episode: played }, until));
    } catch (error) {
      if (error instanceof EpisodeGoneError || gone.signal.aborted) return; // the run no longer waits for it
      if (signal.aborted || error instanceof RefusedError) throw error;
      await ask('broken', { job, message: messageOf(error) }, until);
    }
  }
}

/** Sends an episode. Values that cannot be copied, such as functions in an outcome, are sent as JSON. */
async function handIn<E extends Parameters<typeof readable>[0]>(
  episode: E,
  send: (episode: Parameters<typeof readable>[0]) => Promise<unknown>,
): Promise<void> {
  try {
    packed(episode);
  } catch {
    await send(readable(episode));
    return;
  }
  await send(episode);
}

/** The run no longer waits for an episode. */
class EpisodeGoneError extends Error {}
/** The run refuses this worker. */
class RefusedError extends RunError {}

/**
 * Sends a request to the run and repeats it while no server answers. A repeated request has the same effect as one.
 * @throws EpisodeGoneError, RefusedError when the run refuses this worker, BackendError when it refuses this request
 */
function askRun<P extends WorkerRequestPath>(
  url: string,
  secret: string,
  path: P,
  ask: WorkerRequests[P]['ask'],
  signal: AbortSignal,
): Promise<WorkerRequests[P]['answer']> {
  const body = packed(ask);
  const once = async () => {
    const response = await fetch(`${url}/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/octet-stream' },
      body,
      signal,
    });
    if (response.ok) return unpacked(new Uint8Array(await response.arrayBuffer())) as WorkerRequests[P]['answer'];
    const { message = '' } = (await response.json()) as { message?: string };
    if (response.status === 410) throw new AbortError(new EpisodeGoneError(message));
    if (response.status === 422) throw new AbortError(new BackendError(message));
    if (response.status < 500) throw new AbortError(new RefusedError(message));
    throw new Error(message);
  };
  return pRetry(once, { retries: 60, minTimeout: 50, maxTimeout: 2000, signal });
}
