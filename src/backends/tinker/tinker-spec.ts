import { z } from 'zod';
import { Secret } from '../../core/secret.js';
import { PROFILE_NAMES } from './server-profile.js';

const count = z.int().min(1);

export const tinkerSchema = z.strictObject({
  type: z.literal('tinker'),
  /** The server's address: http://127.0.0.1:8000, https://... */
  url: z.url({ protocol: /^https?$/, error: 'expected the URL of a server, such as http://127.0.0.1:8000' }),
  /** By default TINKER_API_KEY of the environment. It is never written to recipe.json, events or messages. */
  apiKey: z
    .string()
    .min(1)
    .transform((text) => new Secret(text))
    .optional(),
  /** What the server does: measured at the start, or that of a known server, taken at its word. */
  profile: z.enum(['auto', ...PROFILE_NAMES]).default('auto'),
  /** The server's names of models by their path in the recipe; the server calls a model that is not listed as the recipe does. */
  models: z.record(z.string(), z.string().min(1)).default({}),
  /** Most sampling requests in flight. */
  concurrency: count.default(64),
  /** Updates between savings of weights and optimiser on the server, from which a lost model is made again. */
  saveEvery: count.default(10),
  /** How long a result may take, in seconds, before it has failed. */
  deadlineSeconds: z.number().gt(0).default(1800),
});

/** A server that speaks the Tinker protocol: the hosted service, SkyRL on a cluster of one's own, and others. */
export type TinkerSpec = z.output<typeof tinkerSchema>;

/** A server as it is written: all but the URL has a default. */
export type TinkerInput = z.input<typeof tinkerSchema>;

/** Trains and samples on a server that speaks the Tinker protocol: `backend: tinker({ url: 'http://127.0.0.1:8000' })`. */
export function tinker(options: Omit<TinkerInput, 'type'>): TinkerInput {
  return { type: 'tinker', ...options };
}
