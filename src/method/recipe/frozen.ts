/** Agents that never train: a model that is not updated, or an endpoint of another server. */
import { z } from 'zod';
import { type EndpointOptions, endpointSchema } from '../../engine/backends.js';
import { completeModel, type ModelInput, modelSchema } from '../../engine/model.js';

export const frozenSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('frozen'),
    model: modelSchema.transform(completeModel).describe('The model that plays.'),
  }),
  endpointSchema,
]);

/** The model or endpoint of a frozen agent. */
export type FrozenSpec = z.output<typeof frozenSchema>;

/** The result of `frozen`: a model or an endpoint. */
export type FrozenInput =
  | {
      readonly type: 'frozen';
      /** The model that plays. */
      readonly model: ModelInput;
    }
  | ({ readonly type: 'endpoint' } & EndpointOptions);

/**
 * Declares an agent in `assign` that never trains. A model runs on the recipe's backend: a checkpoint with its own
 * weights, a tiny decoder with its weights after the warm start. `{ url, model }` is an OpenAI-compatible endpoint,
 * which exchanges text and uses the agent's sampling settings. Its key comes from the environment (OPENAI_API_KEY)
 * unless you give it, and drmas never writes it to disk. An endpoint may answer the same request differently, so a run
 * with one is not reproducible bit for bit.
 *
 * @example
 * ```ts
 * import { frozen } from 'drmas';
 *
 * const assign = {
 *   solver: 'solver',
 *   verifier: frozen({ url: 'http://127.0.0.1:8000/v1', model: 'qwen3-32b' }),
 * };
 * ```
 */
export function frozen(model: ModelInput | EndpointOptions): FrozenInput {
  return 'url' in model ? { type: 'endpoint', ...model } : { type: 'frozen', model };
}
