/** A worker: plays episodes for the run on the queue, with the tools of its machine and the run's policies. */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Generation, Utterance } from '@drmas/engine/contract';
import {
  AnswerError,
  BackendError,
  isObject,
  jsonValue,
  messageOf,
  RecipeError,
  RunError,
  reasonOf,
} from '@drmas/engine/errors';
import { type Host, unlessAborted } from '@drmas/engine/host';
import { bytesOf, commandText, isEqual, packageVersion, patientFetch } from '@drmas/engine/platform';
import pRetry, { AbortError } from 'p-retry';
import { type OpenGateway, openGateway } from '../../gateway/index.js';
import { rolloutContext } from '../../gateway/rollouts.js';
import { loadRecipe, shippedRecipes } from '../../method/recipe-files.js';
import type { Team } from '../../teams/index.js';
import { playEpisode, readable, remoteSpeakers } from '../../teams/rollout.js';
import { type QueueKey, queueKey } from './queue-key.js';
import { connectRedis, type QueueModules, queueModules, redisOptions } from './redis.js';
import {
  ANNOUNCED_SECONDS,
  type Announcement,
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
  readonly url: string;
  readonly queue: string;
  readonly recipe?: string | undefined;
  /** Without a file: a folder. The worker plays the recipes below it that runs name, and recipes that ship. */
  readonly recipes?: string | undefined;
  readonly concurrency: number;
}

/** A look at the announcement: a run, none, or a value that is not for this worker. */
type AnnouncementState = Announcement | 'none' | 'unreadable';

/** Plays until the host's signal fires. Then its open episodes end, and other workers play them again. */
export async function runWorker(request: WorkerRequest, { signal, notify }: Host): Promise<void> {
  const modules = await queueModules();
  const key = await queueKey();
  const redis = await connectRedis(modules, request.url);
  const place = announcementKey(request.queue);
  let ignored = '';
  const look = async (): Promise<AnnouncementState> => {
    try {
      const text = await unlessAborted(redis.get(place), signal); // while Redis is away, its client waits
      return text === null ? 'none' : key.read(request.queue, text);
    } catch (error) {
      if (signal.aborted) return 'none';
      const message = `ignoring ${place} in Redis: ${messageOf(error)}`;
      if (message !== ignored) notify(message);
      ignored = message;
      return 'unreadable';
    }
  };
  try {
    notify(`waiting for a run on the queue '${request.queue}' at ${request.url}`);
    let refused = '';
    while (!signal.aborted) {
      const run = await look();
      if (typeof run === 'object' && run.run !== refused) {
        try {
          await playFor(run, request, { key, modules, look, signal, notify });
        } catch (error) {
          if (error instanceof RecipeError) throw error;
          if (!(error instanceof UnansweredError)) refused = run.run; // else it may answer the next time
          notify(`not playing for the run at ${run.url}: ${messageOf(error)}`);
        }
      }
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    redis.disconnect();
  }
}

interface WorkerSurroundings {
  readonly key: QueueKey;
  readonly modules: QueueModules;
  readonly look: () => Promise<AnnouncementState>;
  readonly signal: AbortSignal;
  readonly notify: (message: string) => void;
}

/**
 * @throws RunError when this worker may not load the recipe, the run refuses it, does not answer or does not have the
 * key; RecipeError when the worker's own recipe cannot be loaded here, or the port of the gateway is in use
 */
async function playFor(run: Announcement, request: WorkerRequest, surroundings: WorkerSurroundings): Promise<void> {
  const { url, queue, concurrency } = request;
  const { key, modules, look, signal, notify } = surroundings;
  const source = await allowedSource(run, request);
  const { definition, codeHash } = await loadRecipe(source, (hash) => {
    if (hash !== run.codeHash)
      throw new RunError(`the code of ${source} here differs from the code of the run: copy the files again`);
  });
  const { team } = definition.input;
  const over = new AbortController();
  setMaxListeners(0, over.signal); // every episode listens to it
  const nonce = randomUUID();
  const name = `${hostname()}:${process.pid}`;
  const registration = { codeHash, version: packageVersion(), name, nonce };
  const given = await askRun(run.url, key.door(run.run), 'register', registration, signal, REGISTRATION);
  if (!isEqual(given.proof, key.proof(run.run, nonce)))
    throw new RunError('what answers there is not the run: it does not have the key');
  notify(`playing ${concurrency} episodes at once for ${run.url}, recipe ${given.recipe.slice(0, 12)}`);
  const warn = (message: string) => {
    const warning = { about: 'gateway', message } as const;
    askRun(run.url, given.secret, 'warning', warning, over.signal).catch(() => {});
  };
  const gateway = given.gateway && (await openGateway(given.gateway, { maxTurns: given.settings.maxTurns, warn }));
  const player = new EpisodePlayer(run.url, given, team, gateway);
  const refused = new AbortController();
  const play = async (job: string) => {
    try {
      await player.play(job, over.signal);
    } catch (error) {
      if (error instanceof RefusedError) refused.abort(error);
      throw error;
    }
  };
  const worker = new modules.Worker(queueOf(queue, run.run), (job) => play(job.id ?? ''), {
    connection: redisOptions(url),
    concurrency,
    lockDuration: 1000 * given.leaseSeconds,
    stalledInterval: 500 * given.leaseSeconds,
    maxStalledCount: Number.MAX_SAFE_INTEGER,
  });
  let reported = '';
  worker.on('error', ({ name, message }) => {
    if (name !== 'ReplyError' || message === reported) return; // the client reconnects by itself
    reported = message;
    notify(`Redis refuses what a worker needs: ${message}`);
  });
  const until = AbortSignal.any([signal, refused.signal]);
  try {
    let seen = performance.now();
    while (!until.aborted) {
      const now = await look();
      if (typeof now === 'object' && now.run === run.run) seen = performance.now();
      // The run writes its announcement again, so that an unreadable value lasts only if the run has ended.
      else if (now !== 'unreadable' || performance.now() - seen > 1000 * ANNOUNCED_SECONDS) break;
      await sleep(LOOK_MS, undefined, { signal: until }).catch(() => {});
    }
  } finally {
    over.abort(new RunError('the run has ended, or this worker stops'));
    await worker.close(true);
    await gateway?.close();
  }
  if (refused.signal.aborted) throw refused.signal.reason;
}

/**
 * The recipe that this worker loads for a run: its own file, a recipe that ships, or a file below its folder.
 * @throws RunError with the command to use, for any other file
 */
async function allowedSource(
  { source }: Announcement,
  { recipe, recipes, url, queue }: WorkerRequest,
): Promise<string> {
  if (recipe !== undefined) return recipe;
  if (shippedRecipes().includes(source)) return source;
  const [folder, file] = [recipes ?? '', source].map((path) => realpath(path).catch(() => resolve(path)));
  const inside = relative((await folder) as string, (await file) as string);
  if (recipes !== undefined && inside !== '' && !inside.startsWith('..') && !isAbsolute(inside)) return source;
  const command = commandText([
    'drmas',
    'serve',
    'worker',
    '--url',
    url,
    '--queue',
    queue,
    '--recipes',
    dirname(source),
  ]);
  throw new RunError(
    recipes === undefined
      ? `it names the recipe ${source}, and a worker without a recipe file runs only files below the folder that it names: ${command}`
      : `the recipe ${source} does not lie below ${recipes}: ${command}`,
  );
}

/** The most that a worker reads of an answer, and how long it waits for one. Calls take as long as models need. */
interface AnswerLimits {
  readonly bytes: number;
  readonly ms: number;
  /** A run that answers nothing in this time is given up. */
  readonly triesMs: number;
}

const LIMITS: AnswerLimits = { bytes: 256e6, ms: 60_000, triesMs: 120_000 };
/** Before the run has shown that it has the key, a worker reads little. */
const REGISTRATION: AnswerLimits = { ...LIMITS, bytes: 16e6, ms: 30_000 };
const REFUSAL_BYTES = 64e3;

export class EpisodePlayer {
  readonly #url: string;
  readonly #given: Registered;
  readonly #team: Team;
  readonly #gateway: OpenGateway | undefined;
  readonly #limits: AnswerLimits;

  constructor(url: string, given: Registered, team: Team, gateway: OpenGateway | undefined, limits = LIMITS) {
    this.#limits = limits;
    this.#url = url;
    this.#given = given;
    this.#team = team;
    this.#gateway = gateway;
  }

  /**
   * Plays an episode and hands it in, if the run still waits for it.
   * @throws UnansweredError, RefusedError, or the signal's reason. The episode is then played again
   */
  async play(job: string, signal: AbortSignal): Promise<void> {
    const gone = new AbortController();
    const until = AbortSignal.any([signal, gone.signal]);
    const ask = <P extends WorkerRequestPath>(path: P, body: WorkerRequests[P]['ask'], by: AbortSignal) =>
      askRun(this.#url, this.#given.secret, path, body, by, this.#limits).catch((error: unknown) => {
        // The team must not take a lost call for an answer: the same episode is played again.
        if (error instanceof EpisodeGoneError || error instanceof UnansweredError) gone.abort(error);
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
    } catch (thrown) {
      const error = gone.signal.aborted ? gone.signal.reason : thrown;
      if (error instanceof EpisodeGoneError) return; // the run no longer waits for it
      if (signal.aborted || error instanceof RefusedError || error instanceof UnansweredError) throw error;
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
/** The run has not answered a request, nor its repetitions. */
class UnansweredError extends RunError {}

/**
 * Sends a request to the run and repeats it while no server answers. A repeated request has the same effect as one.
 * @throws EpisodeGoneError, RefusedError when the run refuses this worker, BackendError when it refuses this request,
 * UnansweredError when it does not answer for about two minutes
 * @param limits An answer that is longer is not read: the run refuses this worker, as far as it can tell
 */
function askRun<P extends WorkerRequestPath>(
  url: string,
  secret: string,
  path: P,
  ask: WorkerRequests[P]['ask'],
  signal: AbortSignal,
  limits = LIMITS,
): Promise<WorkerRequests[P]['answer']> {
  const body = packed(ask);
  const within = () => (path === 'call' ? signal : AbortSignal.any([signal, AbortSignal.timeout(limits.ms)]));
  const lost = (error: unknown): never => {
    if (error instanceof AnswerError) throw new AbortError(new RefusedError(`the run at ${url}: ${error.message}`));
    throw new UnansweredError(`the run at ${url} does not answer: ${reasonOf(error)}`);
  };
  const once = async () => {
    const response = await patientFetch(`${url}/${path}`, {
      method: 'POST',
      redirect: 'manual', // the secret and the episode are for this run
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/octet-stream' },
      body,
      signal: within(),
    }).catch(lost);
    const read = (most: number) => bytesOf(response, most).catch(lost);
    if (response.ok) return unpacked(await read(limits.bytes)) as WorkerRequests[P]['answer'];
    if (response.status < 400)
      throw new AbortError(
        new RefusedError(
          `${url} redirects to ${response.headers.get('location')}: rollout.publicUrl must be its own address`,
        ),
      );
    const refusal = jsonValue(new TextDecoder().decode(await read(REFUSAL_BYTES)));
    if (refusal === undefined) lost('its answer is no JSON');
    const message = isObject(refusal) && typeof refusal.message === 'string' ? refusal.message : '';
    if (response.status === 410) throw new AbortError(new EpisodeGoneError(message));
    if (response.status === 422) throw new AbortError(new BackendError(message));
    if (response.status < 500) throw new AbortError(new RefusedError(message));
    if (response.status > 500) lost(message); // a proxy says so, not the run
    throw new Error(message);
  };
  return pRetry(once, { retries: 60, minTimeout: 50, maxTimeout: 2000, maxRetryTime: limits.triesMs, signal });
}
