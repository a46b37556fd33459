/** Where workers ask a run: they register, take episodes, have policies speak, and hand in what they played. */
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { Hono } from 'hono';
import type { GatewaySettings } from '../../agents/gateway/gateway-settings.js';
import type { Episode } from '../../core/episode.js';
import { DialectError, isGoneForGood, messageOf, TrainingError } from '../../core/errors.js';
import { bodyBytes } from '../../dialects/request-body.js';
import { packageVersion } from '../../platform/package-version.js';
import type { RecipeCode } from '../../recipe/recipe.js';
import type { RolloutContext } from '../../rollout/rollout-context.js';
import { answerOf, type PlayRequest, remoteSettings } from '../remote-speakers.js';
import { type DeskPath, type DeskRequests, packed, type Registered, unpacked } from './wire.js';

/** An episode with its turns: far more than any model's context. */
const MOST_BYTES = 256e6;

export interface DeskOptions {
  readonly context: RolloutContext;
  readonly code: RecipeCode;
  /** The digest of the resolved recipe. */
  readonly recipe: string;
  readonly leaseSeconds: number;
  /** What workers register with. */
  readonly secret: string;
  /** The settings of the workers' gateways, where they have any. */
  readonly gateway?: GatewaySettings | undefined;
  /** Receives once what requests to those wish for and the recipe decides. */
  readonly onIgnored?: (message: string) => void;
}

/** An episode that somebody waits for. */
interface Open {
  readonly request: PlayRequest;
  readonly controller: AbortController;
  readonly resolve: (episode: Episode) => void;
  readonly reject: (error: unknown) => void;
}

export class Desk {
  readonly app = new Hono();
  /** How many workers have registered. */
  workers = 0;
  readonly #options: DeskOptions;
  readonly #secrets = new Set<string>();
  readonly #open = new Map<string, Open>();
  /** What a worker's gateway has said, which every other worker says too. */
  readonly #ignored = new Set<string>();

  constructor(options: DeskOptions) {
    this.#options = options;
    this.#answer('register', (ask) => this.#register(ask));
    this.#answer('take', ({ job }) => this.#episode(job).request);
    this.#answer('speak', (ask, gone) => this.#speak(ask, gone));
    this.#answer('over', ({ job, episode }) => {
      // One that was played twice, because its worker seemed dead, is the same twice: the first counts.
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

  /** The episodes that are waited for. */
  get open(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** Offers an episode to the workers under a name, until it is over. */
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
      controller.abort(); // what still asks for it is told that nobody waits
    }
  }

  /** Ends everything that is waited for. */
  end(reason: unknown): void {
    for (const { reject } of this.#open.values()) reject(reason);
  }

  #register({ codeHash, version }: DeskRequests['register']['ask']): Registered {
    const { code, recipe, leaseSeconds, context, gateway } = this.#options;
    if (version !== packageVersion())
      throw new DialectError(409, 'version', `the worker is of version ${version}, the run of ${packageVersion()}`);
    if (codeHash !== code.codeHash)
      throw new DialectError(409, 'code', "the worker's code of the recipe is not the run's: copy the files anew");
    const secret = randomBytes(32).toString('hex');
    this.#secrets.add(secret);
    this.workers++;
    return { secret, recipe, settings: remoteSettings(context), gateway, leaseSeconds };
  }

  async #speak({ job, policy, request }: DeskRequests['speak']['ask'], gone: AbortSignal) {
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

  #episode(job: string): Open {
    const open = this.#open.get(job);
    if (open === undefined) throw new DialectError(410, 'over', `the episode ${job} is over`);
    return open;
  }

  #answer<P extends DeskPath>(
    path: P,
    act: (
      ask: DeskRequests[P]['ask'],
      gone: AbortSignal,
    ) => DeskRequests[P]['answer'] | Promise<DeskRequests[P]['answer']>,
  ): void {
    this.app.post(`/${path}`, async (c) => {
      const secret = /^Bearer (\w+)$/.exec(c.req.header('authorization') ?? '')?.[1] ?? '';
      const known = path === 'register' ? secret === this.#options.secret : this.#secrets.has(secret);
      if (!known) throw new DialectError(401, 'unknown_worker', 'no worker of this run has that secret');
      const ask = unpacked(await bodyBytes(c.req.raw, MOST_BYTES)) as DeskRequests[P]['ask'];
      return new Response(packed(await act(ask, c.req.raw.signal)));
    });
  }
}
