/** The messages between a run and its workers. Redis has the run's address; everything else goes over HTTP. */
import { deserialize, serialize } from 'node:v8';
import { z } from 'zod';
import { DialectError } from '../../base/errors.js';
import type { Episode } from '../../base/nouns.js';
import type { Generation, Utterance } from '../../engine/contract.js';
import type { GatewaySettings } from '../../gateway/settings.js';
import type { PlayRequest, RemoteSettings, SpeakerRequest } from '../../teams/rollout.js';

/** The run's announcement in Redis. */
export const announcement = z.object({
  /** The run's unique name. A worker ignores jobs of other runs. */
  run: z.string(),
  /** The URL for requests of workers. */
  url: z.string(),
  /** The recipe's source as the run names it, for workers that were started without one. */
  source: z.string(),
  /** The secret that workers register with. */
  secret: z.string(),
});

export type Announcement = z.output<typeof announcement>;

export const ANNOUNCED_SECONDS = 20;

export const announcementKey = (queue: string) => `drmas:${queue}:run`;
export const queueOf = (queue: string, run: string) => `drmas-${queue}-${run}`;

/** The worker's version and code. The run compares them with its own. */
export interface Registration {
  readonly codeHash: string;
  readonly version: string;
}

/** The reply to a registration. */
export interface Registered {
  /** The worker's own secret, which its later requests carry. */
  readonly secret: string;
  /** The digest of the run's resolved recipe. */
  readonly recipe: string;
  readonly settings: RemoteSettings;
  /**
   * The address of the worker's own gateway, for a recipe that has one: programs with agents ask the worker, which asks
   * the run.
   */
  readonly gateway: GatewaySettings | undefined;
  readonly leaseSeconds: number;
}

/** The requests of workers by their paths, each with its answer. */
export interface WorkerRequests {
  register: { ask: Registration; answer: Registered };
  take: { ask: { readonly job: string }; answer: PlayRequest };
  call: {
    ask: { readonly job: string; readonly policy: string; readonly request: SpeakerRequest };
    answer: Generation | Utterance;
  };
  over: { ask: { readonly job: string; readonly episode: Episode }; answer: true };
  broken: { ask: { readonly job: string; readonly message: string }; answer: true };
  warning: { ask: { readonly about: 'team' | 'gateway'; readonly message: string }; answer: true };
}

export type WorkerRequestPath = keyof WorkerRequests;

/** Values in the binary format of this version of Node: numbers keep their bits, and undefined stays undefined. */
export const packed = (value: unknown): Uint8Array<ArrayBuffer> => Uint8Array.from(serialize(value));

/** @throws DialectError for bytes that are not a packed value */
export function unpacked(bytes: Uint8Array): unknown {
  try {
    return deserialize(bytes);
  } catch {
    throw new DialectError(400, 'malformed', 'the body is not a packed value of this version');
  }
}
