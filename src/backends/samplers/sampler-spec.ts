/** Engines of other people that sample for a trainer of ours, as a recipe names them. */
import { z } from 'zod';
import { serverKey, serverUrl } from '../server-access.js';

const count = z.int().min(1);

/** The recipe's section `sampler`. */
export const samplerSchema = z.strictObject({
  type: z.enum(['vllm', 'sglang']).describe('The kind of server.'),
  url: serverUrl('an engine, such as http://127.0.0.1:8000').describe(
    'The URL of the engine, such as `http://127.0.0.1:8000`.',
  ),
  apiKey: serverKey('engine', 'SAMPLER_API_KEY'),
  model: z.string().min(1).optional().describe("The engine's name of the model, where it differs from the recipe's."),
  folder: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A folder that the engine sees under the same path, through which weights go to it. By default a temporary one ' +
        'of this machine.',
    ),
  concurrency: count.default(64).describe('The most requests in flight.'),
  timeoutSeconds: z.number().gt(0).default(600).describe('Seconds after which an answer that has not come has failed.'),
});

export type SamplerSpec = z.output<typeof samplerSchema>;

/** The environment variable that holds a key which no recipe.json may keep. */
export const SAMPLER_KEY = 'SAMPLER_API_KEY';

/** An engine as it is written: all but the URL has a default. */
export interface SamplerInput {
  /** The kind of server. */
  readonly type: SamplerSpec['type'];
  /** The URL of the engine, such as `http://127.0.0.1:8000`. */
  readonly url: string;
  /**
   * The key for the engine; where it is not given, SAMPLER_API_KEY of the environment. It is never written to
   * recipe.json, events or messages, and `--set` refuses it.
   */
  readonly apiKey?: string | undefined;
  /** The engine's name of the model, where it differs from the recipe's. */
  readonly model?: string | undefined;
  /**
   * A folder that the engine sees under the same path, through which weights go to it. By default a temporary one of
   * this machine.
   */
  readonly folder?: string | undefined;
  /** The most requests in flight. */
  readonly concurrency?: number | undefined;
  /** Seconds after which an answer that has not come has failed. */
  readonly timeoutSeconds?: number | undefined;
}

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
