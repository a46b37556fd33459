/**
 * Agents that never train: a model that is not updated, an endpoint of another server, a function, or a
 * constant text.
 */

import { ENGINE_DEVICES } from '@drmas/engine/contract';
import { type EndpointOptions, endpointSchema, type TextModelOptions, textModelSchema } from '@drmas/engine/endpoints';
import { ArgumentError, isObject, shown } from '@drmas/engine/errors';
import { completeModel, type ModelInput, modelSchema } from '@drmas/engine/model';
import { z } from 'zod';
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
  z.strictObject({
    type: z.literal('constant'),
    text: z.string().describe('The text of each reply. It costs no tokens.'),
  }),
]);

/** The model, endpoint, function or text of a frozen agent, without the function. */
export type FrozenSpec = z.output<typeof frozenSchema>;

/** The result of `frozen`: a model, an endpoint, a function or a text. */
export type FrozenInput =
  | {
      readonly type: 'frozen';
      /** The model that plays. */
      readonly model: ModelInput;
      /** The device of the model. Default: the `device` of the recipe's backend. */
      readonly device?: PolicyInput['device'];
    }
  | ({ readonly type: 'endpoint' } & EndpointOptions)
  | ({ readonly type: 'text' } & TextModelOptions)
  | {
      readonly type: 'constant';
      /** The text of each reply. It costs no tokens. */
      readonly text: string;
    };

/**
 * Declares an agent in `assign` that never trains.
 *
 * - A model runs on the recipe's backend: a checkpoint with its own weights, a tiny decoder with its weights after the
 *   warm start. `{ device: 'cuda:1' }` places it on another device.
 * - `{ url, model }` is an OpenAI-compatible endpoint, which exchanges text and uses the agent's sampling settings. Its
 *   key comes from the environment (OPENAI_API_KEY) unless you give it, and drmas never writes it to disk.
 * - `{ complete }` is a function of yours, which gets messages and sampling settings and returns a text.
 * - A model of AI SDK, from any of its providers, is asked through its `doGenerate`.
 * - `{ text }` is a constant: each reply is this text. So the team plays without the agent.
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
  model: ModelInput | EndpointOptions | TextModelOptions | AnyLanguageModel | { readonly text: string },
  place: { readonly device?: PolicyInput['device'] } = {},
): FrozenInput {
  const given: unknown = model; // a program in JavaScript gives anything
  if (!isObject(given) || !['text', 'complete', 'specificationVersion', 'url', 'type'].some((key) => key in given))
    throw new ArgumentError(
      `frozen(...): expected checkpoint(...) or another model, or an object with url, complete or text, got ${shown(model)}`,
    );
  if ('text' in model) return { type: 'constant', text: model.text };
  if ('complete' in model) return { type: 'text', ...model };
  if ('specificationVersion' in model)
    return { type: 'text', name: `${model.provider}/${model.modelId}`, complete: completeWith(model) };
  return 'url' in model ? { type: 'endpoint', ...model } : { type: 'frozen', model, ...place };
}
