/** The messages between a run and its workers. Redis has the run's address; everything else goes over HTTP. */
import { deserialize, serialize } from 'node:v8';
import type { Generation, Utterance } from '@drmas/engine/contract';
import { DialectError } from '@drmas/engine/errors';
import { z } from 'zod';
import type { GatewaySettings } from '../../gateway/settings.js';
import type { PlayRequest, RemoteSettings, SpeakerRequest } from '../../teams/rollout.js';

/** The run's announcement in Redis, which a key signs. */
export const announcement = z.object({
  /** The run's unique name. A worker ignores jobs of other runs. */
  run: z.string(),
  url: z.string(),
  /** The recipe's source as the run names it, for workers that were started without one. */
  source: z.string(),
  /** The hash of the recipe's code. A worker compares it before it imports any of the code. */
  codeHash: z.string(),
});

export type Announcement = z.output<typeof announcement>;

export const ANNOUNCED_SECONDS = 20;

export const announcementKey = (queue: string) => `drmas:${queue}:run`;
export const queueOf = (queue: string, run: string) => `drmas-${queue}-${run}`;

/** The worker's version and code, which the run compares with its own, and its name for messages. */
export interface Registration {
  readonly codeHash: string;
  readonly version: string;
  readonly name: string;
  /** A random text, which the run's proof must contain. */
  readonly nonce: string;
}

export interface Registered {
  /** The worker's own secret, which its later requests carry. */
  readonly secret: string;
  /** Shows that the run has the key. */
  readonly proof: string;
  readonly recipe: string;
  readonly settings: RemoteSettings;
  /**
   * The address of the worker's own gateway, for a recipe that has one: programs with agents ask the worker, which asks
   * the run.
   */
  readonly gateway: GatewaySettings | undefined;
  readonly leaseSeconds: number;
}

export interface WorkerRequests {
  register: { ask: Registration; answer: Registered };
  take: { ask: { readonly job: string }; answer: PlayRequest };
  call: {
    ask: { readonly job: string; readonly policy: string; readonly request: SpeakerRequest };
    answer: Generation | Utterance;
  };
  /** The run checks the episode: a worker may send anything. */
  over: { ask: { readonly job: string; readonly episode: unknown }; answer: true };
  broken: { ask: { readonly job: string; readonly message: string }; answer: true };
  warning: { ask: { readonly about: 'team' | 'gateway'; readonly message: string }; answer: true };
}

export type WorkerRequestPath = keyof WorkerRequests;

const job = z.string();
/** The most characters of a text that a run prints or keeps. */
const LONGEST_TEXT = 10_000;
const shownText = z.string().transform((text) => text.slice(0, LONGEST_TEXT));

/** A list of numbers. Only its first fault is named: a worker may send millions. */
export const listOfNumbers = (isValid: (value: unknown) => boolean, expected: string) =>
  z.array(z.unknown()).transform((list, context) => {
    const at = list.findIndex((value) => !isValid(value));
    if (at < 0) return list as number[];
    context.addIssue({ code: 'custom', path: [at], message: `expected ${expected}`, input: list });
    return z.NEVER;
  });

export const ids = listOfNumbers((id) => Number.isSafeInteger(id) && (id as number) >= 0, 'an id');

/** A list whose elements are read only if it has the right length. */
export const listOf = <Element extends z.ZodType>(element: Element, most: number) =>
  z
    .custom<unknown[]>((list) => Array.isArray(list) && list.length <= most, `expected a list of at most ${most}`)
    .pipe(z.array(element));

/** The most messages and tools of a call: far more than any context holds. */
export const MOST_MESSAGES = 1e5;
export const MOST_TOOLS = 1e4;

const sampling = { temperature: z.number(), topP: z.number(), topK: z.int(), maxTokens: z.int().min(1) };
const speakerRequest = z.union([
  z.looseObject({
    ...sampling,
    prompt: ids.refine(({ length }) => length > 0, 'expected at least one id'),
    stopTokens: ids,
    key: z.tuple([z.int(), z.int()]),
    version: z.int().optional(),
  }),
  z.looseObject({
    ...sampling,
    messages: listOf(z.looseObject({ role: z.string(), content: z.string() }), MOST_MESSAGES),
    seed: z.int(),
    tools: listOf(z.looseObject({ name: z.string() }), MOST_TOOLS).optional(),
  }),
]);

export const requestSchemas: { readonly [P in WorkerRequestPath]: z.ZodType } = {
  register: z.object({ codeHash: z.string(), version: z.string(), name: shownText, nonce: z.string().max(200) }),
  take: z.object({ job }),
  call: z.object({ job, policy: z.string(), request: speakerRequest }),
  over: z.object({ job, episode: z.unknown() }),
  broken: z.object({ job, message: shownText }),
  warning: z.object({ about: z.enum(['team', 'gateway']), message: shownText }),
};

/** Values in the binary format of this version of Node: numbers keep their bits, and undefined stays undefined. */
export const packed = (value: unknown): Uint8Array<ArrayBuffer> => Uint8Array.from(serialize(value));

/** The most values in a message, each counted as often as the message refers to it. */
const MOST_VALUES = 64e6;

/** @throws DialectError for bytes that are not a packed value, or for values far larger than their bytes */
export function unpacked(bytes: Uint8Array): unknown {
  try {
    const value: unknown = deserialize(bytes);
    if (countOf(value, bytes.length, new Map()) <= MOST_VALUES) return value;
  } catch {
    // Not a value, or nested too deep.
  }
  throw new DialectError(400, 'malformed', 'the body is not a packed value of this version');
}

/**
 * The number of values in a value. A few bytes may hold a list of four billion holes, or a million references to one
 * long list.
 */
function countOf(value: unknown, bytes: number, counted: Map<object, number>): number {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return 1;
  const before = counted.get(value);
  if (before !== undefined) return before;
  counted.set(value, 1); // a value that contains itself
  if (Array.isArray(value) && value.length > bytes) return Number.POSITIVE_INFINITY;
  let count = 1;
  for (const inner of partsOf(value)) count += countOf(inner, bytes, counted);
  counted.set(value, count);
  return count;
}

function partsOf(value: object): Iterable<unknown> {
  if (Array.isArray(value) || value instanceof Set) return value;
  return value instanceof Map ? [...value.keys(), ...value.values()] : Object.values(value);
}
