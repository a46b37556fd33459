/** Agents that never train: a model that is not updated, an endpoint of another server, or a function. */
import { z } from 'zod';
import { type EndpointOptions, endpointSchema, type TextModelOptions, textModelSchema } from '../../engine/backends.js';
import { ENGINE_DEVICES } from '../../engine/contract.js';
import { completeModel, type ModelInput, modelSchema } from '../../engine/model.js';
import { type AnyLanguageModel, completeWith } from '../../gateway/language-models.js';
import type { PolicyInput } from './settings-input.js';

export const frozenSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('frozen'),
    model: modelSchema.transform(completeModel).describe('The model that plays.'),
    device: z
      .enum(ENGINE_DEVICES)
      .optional()
      .describe("The device of the model. Default: the `device` of the recipe's backend."),
  }),
  endpointSchema,
  textModelSchema,
]);

/** The model, endpoint or function of a frozen agent, without the function. */
export type FrozenSpec = z.output<typeof frozenSchema>;

/** The result of `frozen`: a model, an endpoint or a function. */
export type FrozenInput =
  | {
      readonly type: 'frozen';
      /** The model that plays. */
      readonly model: ModelInput;
      /** The device of the model. Default: the `device` of the recipe's backend. */
      readonly device?: PolicyInput['device'];
    }
  | ({ readonly type: 'endpoint' } & EndpointOptions)
  | ({ readonly type: 'text' } & TextModelOptions);

/**
 * Declares an agent in `assign` that never trains.
 *
 * - A model runs on the recipe's backend: a checkpoint with its own weights, a tiny decoder with its weights after the
 *   warm start. `{ device: 'cuda:1' }` places it on another device.
 * - `{ url, model }` is an OpenAI-compatible endpoint, which exchanges text and uses the agent's sampling settings. Its
 *   key comes from the environment (OPENAI_API_KEY) unless you give it, and drmas never writes it to disk.
 * - `{ complete }` is a function of yours, which gets messages and sampling settings and returns a text.
 * - A model of AI SDK, from any of its providers, is asked through its `doGenerate`.
 *
 * An endpoint, a function or a provider may answer the same request differently, so a run with one is not reproducible
 * bit for bit.
 *
 * @example
 * ```ts
 * import { frozen } from 'drmas';
 *
 * const assign = {
 *   solver: 'solver',
 *   verifier: frozen({ url: 'http://127.0.0.1:8000/v1', model: 'qwen3-32b' }),
 *   critic: frozen({ complete: async ({ messages }) => ({ text: messages.length > 4 ? 'stop' : 'go on' }) }),
 * };
 * ```
 */
export function frozen(
  model: ModelInput | EndpointOptions | TextModelOptions | AnyLanguageModel,
  place: { readonly device?: PolicyInput['device'] } = {},
): FrozenInput {
  if ('complete' in model) return { type: 'text', ...model };
  if ('specificationVersion' in model)
    return { type: 'text', name: `${model.provider}/${model.modelId}`, complete: completeWith(model) };
  return 'url' in model ? { type: 'endpoint', ...model } : { type: 'frozen', model, ...place };
}
