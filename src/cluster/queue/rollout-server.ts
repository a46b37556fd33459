/** The server of a run for its workers: they register, take episodes, call policies and return the episodes. */
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { Hono } from 'hono';
import { DialectError, isGoneForGood, messageOf, TrainingError } from '../../base/errors.js';
import type { Episode } from '../../base/nouns.js';
import { packageVersion } from '../../base/platform.js';
import { bodyBytes } from '../../gateway/dialects.js';
import type { GatewaySettings } from '../../gateway/settings.js';
import type { RecipeCode } from '../../method/recipe.js';
import type { RolloutContext } from '../../teams/rollout.js';
import { answerOf, type PlayRequest, remoteSettings } from '../../teams/rollout.js';
import { packed, type Registered, unpacked, type WorkerRequestPath, type WorkerRequests } from './wire.js';

/** The size limit of a request. It is far above an episode that fills a model's context. */
const MOST_BYTES = 256e6;

export interface RolloutServerOptions {
  readonly context: RolloutContext;
  readonly code: RecipeCode;
  /** The digest of the resolved recipe. */
  readonly recipe: string;
  readonly leaseSeconds: number;
  /** The secret that workers register with. */
  readonly secret: string;
  /** The settings of the workers' gateways, if the recipe has a gateway. */
  readonly gateway?: GatewaySettings | undefined;
  /** Receives once the settings that gateway requests ask for and the recipe overrides. */
  readonly onIgnored?: (message: string) => void;
}

/** An episode that the run waits for. */
interface OpenEpisode {
  readonly request: PlayRequest;
  readonly controller: AbortController;
  readonly resolve: (episode: Episode) => void;
  readonly reject: (error: unknown) => void;
}

export class RolloutServer {
  readonly app = new Hono();
  /** The number of registered workers. */
  workers = 0;
  readonly #options: RolloutServerOptions;
  readonly #secrets = new Set<string>();
  readonly #open = new Map<string, OpenEpisode>();
  /** Warnings of the workers' gateways that were already reported: each worker sends the same ones. */
  readonly #ignored = new Set<string>();

  constructor(options: RolloutServerOptions) {
    this.#options = options;
    this.#answer('register', (ask) => this.#register(ask));
    this.#answer('take', ({ job }) => this.#episode(job).request);
    this.#answer('call', (ask, gone) => this.#call(ask, gone));
    this.#answer('over', ({ job, episode }) => {
      // An episode may be played twice if its worker seemed dead. Both plays are equal, and the first one counts.
      this.#open.get(job)?.resolve(episode);
      return true;
    });
    this.#answer('broken', ({ job, message }) => {
      this.#open.get(job)?.reject(new TrainingError(message));
      return true;
    });
    this.#answer('warning', ({ about, message }) => {
      if (about === 'team') options.context.warn?.(message);
      else if (!this.#ignored.has(message)) options.onIgnored?.(message);
      if (about === 'gateway') this.#ignored.add(message);
      return true;
    });
    this.app.onError((error) => {
      const { status, code } = error instanceof DialectError ? error : { status: 500, code: 'failed' };
      return Response.json({ code, message: messageOf(error) }, { status });
    });
  }

  /** The episodes that the run waits for. */
  get open(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** Offers an episode to the workers under a name, until it has ended. */
  async offer(job: string, request: PlayRequest, signal: AbortSignal | undefined): Promise<Episode> {
    const controller = new AbortController();
    if (signal !== undefined) setMaxListeners(0, signal); // every episode listens to it
    try {
      return await new Promise<Episode>((resolve, reject) => {
        this.#open.set(job, { request, controller, resolve, reject });
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true, signal: controller.signal });
      });
    } finally {
      this.#open.delete(job);
      controller.abort(); // ends requests that still belong to this episode
    }
  }

  /** Rejects all open episodes. */
  end(reason: unknown): void {
    for (const { reject } of this.#open.values()) reject(reason);
  }

  #register({ codeHash, version }: WorkerRequests['register']['ask']): Registered {
    const { code, recipe, leaseSeconds, context, gateway } = this.#options;
    if (version !== packageVersion())
      throw new DialectError(409, 'version', `the worker has version ${version}, the run has ${packageVersion()}`);
    if (codeHash !== code.codeHash)
      throw new DialectError(
        409,
        'code',
        "the worker's code of the recipe differs from the run's: copy the files again",
      );
    const secret = randomBytes(32).toString('hex');
    this.#secrets.add(secret);
    this.workers++;
    return { secret, recipe, settings: remoteSettings(context), gateway, leaseSeconds };
  }

  async #call({ job, policy, request }: WorkerRequests['call']['ask'], gone: AbortSignal) {
    const { controller, reject } = this.#episode(job);
    try {
      return await answerOf(
        this.#options.context.policies,
        policy,
        request,
        AbortSignal.any([controller.signal, gone]),
      );
    } catch (error) {
      if (isGoneForGood(error)) reject(error);
      throw new DialectError(422, 'refused', messageOf(error));
    }
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
    ) => WorkerRequests[P]['answer'] | Promise<WorkerRequests[P]['answer']>,
  ): void {
    this.app.post(`/${path}`, async (c) => {
      const secret = /^Bearer (\w+)$/.exec(c.req.header('authorization') ?? '')?.[1] ?? '';
      const known = path === 'register' ? secret === this.#options.secret : this.#secrets.has(secret);
      if (!known) throw new DialectError(401, 'unknown_worker', 'no worker of this run has that secret');
      const ask = unpacked(await bodyBytes(c.req.raw, MOST_BYTES)) as WorkerRequests[P]['ask'];
      return new Response(packed(await act(ask, c.req.raw.signal)));
    });
  }
}
