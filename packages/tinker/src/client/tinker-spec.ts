import { serverKey } from '@drmas/engine/endpoints';
import { serverUrl } from '@drmas/engine/requests';
import { z } from 'zod';
import { PROFILE_NAMES } from './server-profile.js';
import type { TinkerInput } from './tinker-input.js';

const count = z.int().min(1);

export const tinkerSchema = z.strictObject({
  type: z.literal('tinker'),
  url: serverUrl('a server, such as http://127.0.0.1:8000').describe(
    'The URL of the server, such as `http://127.0.0.1:8000`.',
  ),
  apiKey: serverKey('server', 'TINKER_API_KEY'),
  profile: z
    .enum(['auto', ...PROFILE_NAMES])
    .default('auto')
    .describe(
      "The server's behaviour: `auto` measures it at the start, the name of a known server selects its known behaviour.",
    ),
  models: z
    .record(z.string(), z.string().min(1))
    .default({})
    .describe("The server's names of models by their path in the recipe, if the two differ."),
  concurrency: count.default(64).describe('The most sampling requests in flight.'),
  saveEvery: count
    .default(10)
    .describe(
      'The number of updates between two savings of weights and optimiser on the server. A lost model is made again from the last saving.',
    ),
  deadlineSeconds: z
    .number()
    .gt(0)
    .default(1800)
    .describe(
      'Seconds after which a request without an answer, or a missing result, counts as failed: the time of all retries together.',
    ),
});

/** A server that speaks the Tinker protocol: the hosted service, SkyRL on your own cluster, and others. */
export type TinkerSpec = z.output<typeof tinkerSchema>;

/**
 * Trains and samples on a server that speaks the Tinker protocol: `backend: tinker({ url: 'http://127.0.0.1:8000' })`.
 *
 * @example
 * ```ts
 * import { defineRecipe, tinker } from 'drmas';
 *
 * const backend = tinker({ url: 'http://127.0.0.1:8000' }); // in a recipe: defineRecipe({ ..., backend })
 * ```
 */
export function tinker(options: Omit<TinkerInput, 'type'>): TinkerInput {
  return { type: 'tinker', ...options };
}
