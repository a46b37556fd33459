/** The recipe's settings of sampling engines by other projects: vLLM and SGLang. */
import { z } from 'zod';
import { serverKey } from '../backends/server-access.js';
import { serverUrl } from '../requests.js';
import type { SamplerInput } from './sampler-input.js';

const count = z.int().min(1);

/** The recipe's section `sampler`. */
export const samplerSchema = z.strictObject({
  type: z.enum(['vllm', 'sglang']).describe('The kind of server.'),
  url: serverUrl('an engine, such as http://127.0.0.1:8000').describe(
    'The URL of the engine, such as `http://127.0.0.1:8000`.',
  ),
  apiKey: serverKey('engine', 'SAMPLER_API_KEY'),
  model: z.string().min(1).optional().describe("The engine's name of the model, if it differs from the recipe's name."),
  folder: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A folder that the engine can read under the same path. The weights for the engine are written there. Default: a ' +
        'temporary folder of this machine.',
    ),
  concurrency: count.default(64).describe('The most requests in flight.'),
});

export type SamplerSpec = z.output<typeof samplerSchema>;

/** The environment variable that holds a key which no recipe.json may keep. */
export const SAMPLER_KEY = 'SAMPLER_API_KEY';

/**
 * Samples on a vLLM server, while the backend trains: adapters go there after each update. Start it with
 * `VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve MODEL --enable-lora`.
 *
 * @example
 * ```ts
 * import { defineRecipe, vllm } from 'drmas';
 *
 * const sampler = vllm({ url: 'http://127.0.0.1:8000' }); // in a recipe: defineRecipe({ ..., sampler })
 * ```
 */
export function vllm(options: Omit<SamplerInput, 'type'>): SamplerInput {
  return { type: 'vllm', ...options };
}

/**
 * Samples on an SGLang server, while the backend trains: adapters (`--enable-lora`) or whole models go there after each
 * update.
 *
 * @example
 * ```ts
 * import { defineRecipe, sglang } from 'drmas';
 *
 * const sampler = sglang({ url: 'http://127.0.0.1:30000' }); // in a recipe: defineRecipe({ ..., sampler })
 * ```
 */
export function sglang(options: Omit<SamplerInput, 'type'>): SamplerInput {
  return { type: 'sglang', ...options };
}
