/**
 * Agents that never train: a model that is not updated, earlier versions of a policy, an endpoint of another server, a
 * function, or a constant text.
 */

import { ENGINE_DEVICES } from '@drmas/engine/contract';
import { type EndpointOptions, endpointSchema, type TextModelOptions, textModelSchema } from '@drmas/engine/endpoints';
import { completeModel, type ModelInput, modelSchema } from '@drmas/engine/model';
import { z } from 'zod';
import { type AnyLanguageModel, completeWith } from '../../gateway/language-models.js';
import type { PolicyInput } from './settings-input.js';

const count = z.int().min(1);

export const frozenSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('frozen'),
    model: modelSchema.transform(completeModel).describe('The model that plays.'),
    device: z
      .enum(ENGINE_DEVICES)
      .optional()
      .describe("The device of the model. Default: the `device` of the recipe's backend."),
  }),
  z.strictObject({
    type: z.literal('pool'),
    of: z.string().min(1).describe('The policy whose earlier versions play.'),
    every: count.default(20).describe('Steps between two versions. The first is from before step 1.'),
    keep: count.default(8).describe('The most versions. A new version replaces the oldest.'),
    draw: z
      .enum(['latest', 'uniform', 'prioritised'])
      .default('uniform')
      .describe(
        'The version that plays a task: `latest`, each with the same probability (`uniform`), or more often a ' +
          'version against which the trained agents score less (`prioritised`).',
      ),
  }),
  endpointSchema,
  textModelSchema,
  z.strictObject({
    type: z.literal('constant'),
    text: z.string().describe('The text of each reply. It costs no tokens.'),
  }),
]);

/** The model, pool, endpoint, function or text of a frozen agent, without the function. */
export type FrozenSpec = z.output<typeof frozenSchema>;

/** A pool of a recipe, with all defaults. */
export type PoolSpec = Extract<FrozenSpec, { readonly type: 'pool' }>;

/** The settings of `pool`. */
export interface PoolOptions {
  /** The policy whose earlier versions play. */
  readonly of: string;
  /** Steps between two versions. The first is from before step 1. Default 20. */
  readonly every?: number;
  /** The most versions. A new version replaces the oldest. Default 8. */
  readonly keep?: number;
  /**
   * The version that plays a task: `latest`, each with the same probability (`uniform`, the default), or more often a
   * version against which the trained agents score less (`prioritised`).
   */
  readonly draw?: PoolSpec['draw'];
}

/** The result of `pool`. */
export type PoolInput = { readonly type: 'pool' } & PoolOptions;

/** The result of `frozen`: a model, a pool, an endpoint, a function or a text. */
export type FrozenInput =
  | {
      readonly type: 'frozen';
      /** The model that plays. */
      readonly model: ModelInput;
      /** The device of the model. Default: the `device` of the recipe's backend. */
      readonly device?: PolicyInput['device'];
    }
  | PoolInput
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
 * - `pool({ of })` plays earlier versions of a policy that trains.
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
  model: ModelInput | PoolInput | EndpointOptions | TextModelOptions | AnyLanguageModel | { readonly text: string },
  place: { readonly device?: PolicyInput['device'] } = {},
): FrozenInput {
  if ('of' in model) return model;
  if ('text' in model) return { type: 'constant', text: model.text };
  if ('complete' in model) return { type: 'text', ...model };
  if ('specificationVersion' in model)
    return { type: 'text', name: `${model.provider}/${model.modelId}`, complete: completeWith(model) };
  return 'url' in model ? { type: 'endpoint', ...model } : { type: 'frozen', model, ...place };
}

/**
 * Opponents or partners from the past: an agent played by earlier versions of a policy that trains. Each task of a step
 * draws a version by the run's seed, and all episodes of the task meet it. Evaluations meet the newest version.
 *
 * @example
 * ```ts
 * import { frozen, pool } from 'drmas';
 *
 * const assign = {
 *   player: 'player',
 *   opponent: frozen(pool({ of: 'player', every: 20, keep: 8, draw: 'prioritised' })),
 * };
 * ```
 */
export function pool(options: PoolOptions): PoolInput {
  return { type: 'pool', ...options };
}
