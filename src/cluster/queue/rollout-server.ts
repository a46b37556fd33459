/** The server of a run for its workers: they register, take episodes, call policies and return the episodes. */
import { randomBytes } from 'node:crypto';
import { DialectError, isGoneForGood, issuesText, messageOf, TrainingError } from '@drmas/engine/errors';
import { excerpt, onAbort, visible } from '@drmas/engine/host';
import type { Episode } from '@drmas/engine/nouns';
import { guardOf, isEqual, packageVersion } from '@drmas/engine/platform';
import { bodyBytes } from '@drmas/engine/requests';
import { Hono } from 'hono';
import type { GatewaySettings } from '../../gateway/settings.js';
import type { RecipeCode } from '../../method/recipe.js';
import type { RolloutContext } from '../../teams/rollout.js';
import { answerOf, noScore, type PlayRequest, type RemoteSettings, remoteSettings } from '../../teams/rollout.js';
import { AnsweredCalls, faultOf } from './handed-in.js';
import type { QueueKey } from './queue-key.js';
import {
  packed,
  type Registered,
  requestSchemas,
  unpacked,
  type WorkerRequestPath,
  type WorkerRequests,
} from './wire.js';

/** The size limit of a request. It is far above an episode that fills a model's context. */
const MOST_BYTES = 256e6;
/** An episode has failed if this many workers handed in one that the run did not sample. */
const MOST_FAULTS = 3;
/** An episode has failed if this many workers took it and none of them handed it in: it may end their processes. */
const MOST_TAKERS = 8;
/** The most warnings of gateways, and of teams, that are passed on. */
const MOST_IGNORED = 100;
const MOST_WARNINGS = 1000;

export interface RolloutServerOptions {
  readonly context: RolloutContext;
  readonly code: RecipeCode;
  readonly recipe: string;
  readonly leaseSeconds: number;
  readonly key: QueueKey;
  readonly run: string;
  readonly gateway?: GatewaySettings | undefined;
  /** Receives once the settings that gateway requests ask for and the recipe overrides. */
  readonly onIgnored?: (message: string) => void;
  /** Receives a message when a worker hands in an episode that the run did not sample. */
  readonly onFault?: (message: string) => void;
}

interface OpenEpisode {
  readonly request: PlayRequest;
  readonly controller: AbortController;
  readonly resolve: (episode: Episode) => void;
  readonly reject: (error: unknown) => void;
  readonly answered: AnsweredCalls;
  faults: number;
  /** The secrets of the workers that took it. */
  readonly takers: Set<string>;
}

interface RegisteredWorker {
  readonly name: string;
  readonly secret: string;
}

export class RolloutServer {
  readonly app = new Hono();
  readonly guard = guardOf({
    access: { type: 'secrets' },
    mostBytes: MOST_BYTES,
    refuse: ({ code, message, status }) => Response.json({ code, message }, { status }),
  });
  readonly #options: RolloutServerOptions;
  readonly #settings: RemoteSettings;
  /** The workers that may play, by their secrets. */
  readonly #workers = new Map<string, RegisteredWorker>();
  #registered = 0;
  readonly #open = new Map<string, OpenEpisode>();
  #warnings = 0;
  /** Warnings of the workers' gateways that were already reported: each worker sends the same ones. */
  readonly #ignored = new Set<string>();

  constructor(options: RolloutServerOptions) {
    this.#options = options;
    this.#settings = remoteSettings(options.context);
    this.#answer('register', (ask) => this.#register(ask));
    this.#answer('take', ({ job }, _, worker) => this.#take(job, worker));
    this.#answer('call', (ask, gone) => this.#call(ask, gone));
    this.#answer('over', ({ job, episode }, _, worker) => this.#over(job, episode, worker));
    this.#answer('broken', ({ job, message }) => {
      this.#open.get(job)?.reject(new TrainingError(message));
      return true;
    });
    this.#answer('warning', ({ about, message }) => {
      if (about === 'team') {
        if (++this.#warnings <= MOST_WARNINGS) options.context.warn?.(message);
      } else if (!this.#ignored.has(message) && this.#ignored.size < MOST_IGNORED) {
        this.#ignored.add(message);
        options.onIgnored?.(message);
      }
      return true;
    });
    this.app.onError((error) => {
      const { status, code } = error instanceof DialectError ? error : { status: 500, code: 'failed' };
      return Response.json({ code, message: messageOf(error) }, { status });
    });
  }

  get open(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** Offers an episode to the workers under a name, until it has ended. */
  async offer(job: string, request: PlayRequest, signal: AbortSignal | undefined): Promise<Episode> {
    const controller = new AbortController();
    let stopListening: (() => void) | undefined;
    try {
      return await new Promise<Episode>((resolve, reject) => {
        const answered = new AnsweredCalls();
        this.#open.set(job, { request, controller, resolve, reject, answered, faults: 0, takers: new Set() });
        stopListening = signal && onAbort(signal, () => reject(signal.reason));
      });
    } finally {
      stopListening?.();
      this.#open.delete(job);
      controller.abort(); // ends requests that still belong to this episode
    }
  }

  end(reason: unknown): void {
    for (const { reject } of this.#open.values()) reject(reason);
  }

  #register({ codeHash, version, name, nonce }: WorkerRequests['register']['ask']): Registered {
    const { code, recipe, leaseSeconds, gateway, key, run } = this.#options;
    if (version !== packageVersion())
      throw new DialectError(409, 'version', `the worker has version ${version}, the run has ${packageVersion()}`);
    if (codeHash !== code.codeHash)
      throw new DialectError(
        409,
        'code',
        "the worker's code of the recipe differs from the run's: copy the files again",
      );
    const secret = randomBytes(32).toString('hex');
    this.#workers.set(secret, { secret, name: `${++this.#registered} (${excerpt(visible(name))})` });
    return { secret, proof: key.proof(run, nonce), recipe, settings: this.#settings, gateway, leaseSeconds };
  }

  #take(job: string, { secret }: RegisteredWorker): PlayRequest {
    const open = this.#episode(job);
    if (open.takers.add(secret).size <= MOST_TAKERS) return open.request;
    const { task, sample, step } = open.request;
    const why = `the episode of ${task.id}/${sample} in step ${step} failed: ${MOST_TAKERS} workers took it, and none of them handed it in; it may end their processes`;
    this.#options.onFault?.(why);
    fail(open, why);
    throw new DialectError(410, 'over', why);
  }

  async #call({ job, policy, request }: WorkerRequests['call']['ask'], gone: AbortSignal) {
    const { controller, reject, answered } = this.#episode(job);
    try {
      answered.begin();
      const { policies } = this.#options.context;
      const answer = await answerOf(policies, policy, request, AbortSignal.any([controller.signal, gone]));
      answered.add(policy, request, answer);
      return answer;
    } catch (error) {
      if (isGoneForGood(error)) reject(error);
      throw new DialectError(422, 'refused', messageOf(error));
    }
  }

  /**
   * Takes an episode. It may be played twice if its worker seemed dead: both plays are equal, and the first one counts.
   * A worker whose episode is not the one that this run sampled is refused from then on.
   */
  #over(job: string, episode: unknown, { name, secret }: RegisteredWorker): true {
    const open = this.#open.get(job);
    if (open === undefined) return true;
    const { request, answered, resolve } = open;
    const { context, onFault } = this.#options;
    const fault = faultOf(episode, { context, request, answered });
    if (fault === undefined) {
      resolve(episode as Episode);
      return true;
    }
    const { task, sample, step } = request;
    const why = `worker ${name} handed in an episode of ${task.id}/${sample} in step ${step} that this run did not sample: ${fault}`;
    const last = ++open.faults === MOST_FAULTS;
    onFault?.(
      `${why}. The worker is refused, and ${last ? `the episode failed after ${MOST_FAULTS} workers` : 'another one plays the episode again'}`,
    );
    this.#workers.delete(secret);
    if (last) fail(open, why);
    throw new DialectError(403, 'refused', why);
  }

  #episode(job: string): OpenEpisode {
    const open = this.#open.get(job);
    if (open === undefined) throw new DialectError(410, 'over', `the episode ${job} is over`);
    return open;
  }

  #answer<P extends WorkerRequestPath>(
    path: P,
    act: (
      ask: WorkerRequests[P]['ask'],
      gone: AbortSignal,
      worker: RegisteredWorker,
    ) => WorkerRequests[P]['answer'] | Promise<WorkerRequests[P]['answer']>,
  ): void {
    const { key, run } = this.#options;
    const door = key.door(run);
    const newcomer = { name: '', secret: '' };
    this.app.post(`/${path}`, async (c) => {
      const secret = /^Bearer (\w+)$/.exec(c.req.header('authorization') ?? '')?.[1] ?? '';
      const worker = path !== 'register' ? this.#workers.get(secret) : isEqual(secret, door) ? newcomer : undefined;
      if (worker === undefined) throw new DialectError(401, 'unknown_worker', 'no worker of this run has that secret');
      const read = requestSchemas[path].safeParse(unpacked(await bodyBytes(c.req.raw, MOST_BYTES)));
      if (!read.success) throw new DialectError(400, 'malformed', `${path}: ${issuesText(read.error.issues)}`);
      const ask = read.data as WorkerRequests[P]['ask'];
      return new Response(packed(await act(ask, c.req.raw.signal, worker)));
    });
  }
}

/** Ends an episode as failed. */
function fail({ request: { task, sample }, resolve }: OpenEpisode, message: string): void {
  const failure = { reason: 'backend', message } as const;
  resolve({ task, sample, turns: [], outcome: undefined, score: noScore, failure });
}
