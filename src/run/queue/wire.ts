/** What a run and its workers say to each other: in Redis who plays for whom, over HTTP all else. */
import { deserialize, serialize } from 'node:v8';
import { z } from 'zod';
import type { GatewaySettings } from '../../agents/gateway/gateway-settings.js';
import type { Generation } from '../../contract/sampling.js';
import type { Utterance } from '../../contract/text-backend.js';
import type { Episode } from '../../core/episode.js';
import { DialectError } from '../../core/errors.js';
import type { PlayRequest, RemoteSettings, SpeakerRequest } from '../remote-speakers.js';

/** What a run tells its workers in Redis, and for how long it holds. */
export const announcement = z.object({
  /** The run's own name; jobs of another are none of its. */
  run: z.string(),
  /** Where it is asked for tokens. */
  url: z.string(),
  /** The recipe's source as the run names it, for workers that are given none. */
  source: z.string(),
  /** What a worker registers with. */
  secret: z.string(),
});

export type Announcement = z.output<typeof announcement>;

export const ANNOUNCED_SECONDS = 20;

export const announcementKey = (queue: string) => `drmas:${queue}:run`;
export const queueOf = (queue: string, run: string) => `drmas-${queue}-${run}`;

/** What a worker says of itself, to be compared with what the run is. */
export interface Registration {
  readonly codeHash: string;
  readonly version: string;
}

/** What a worker is given. */
export interface Registered {
  /** Its own; whatever it asks comes with it. */
  readonly secret: string;
  /** The digest of the run's resolved recipe. */
  readonly recipe: string;
  readonly settings: RemoteSettings;
  /** Where its own gateway listens, in a recipe with one: programs with agents ask the worker, which asks the run. */
  readonly gateway: GatewaySettings | undefined;
  readonly leaseSeconds: number;
}

/** The requests of workers by their paths, each with its answer. */
export interface DeskRequests {
  register: { ask: Registration; answer: Registered };
  take: { ask: { readonly job: string }; answer: PlayRequest };
  speak: {
    ask: { readonly job: string; readonly policy: string; readonly request: SpeakerRequest };
    answer: Generation | Utterance;
  };
  over: { ask: { readonly job: string; readonly episode: Episode }; answer: true };
  broken: { ask: { readonly job: string; readonly message: string }; answer: true };
  warning: { ask: { readonly about: 'team' | 'gateway'; readonly message: string }; answer: true };
}

export type DeskPath = keyof DeskRequests;

/** Values as this version of Node writes them: numbers keep their bits, and what is undefined stays so. */
export const packed = (value: unknown): Uint8Array<ArrayBuffer> => Uint8Array.from(serialize(value));

/** @throws DialectError for bytes that are no packed value */
export function unpacked(bytes: Uint8Array): unknown {
  try {
    return deserialize(bytes);
  } catch {
    throw new DialectError(400, 'malformed', 'the body is no value of this version');
  }
}
