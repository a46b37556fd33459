/** Agents that play and never train: a model that stays as it is, or an endpoint that somebody else serves. */
import { z } from 'zod';
import { type EndpointOptions, endpointSchema } from '../backends/endpoint/endpoint-spec.js';
import { completeModel, type ModelInput } from '../model/model-spec.js';
import { modelSchema } from './choices.js';

export const frozenSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('frozen'),
    model: modelSchema.transform(completeModel).describe('The model that plays.'),
  }),
  endpointSchema,
]);

/** What speaks for a frozen agent. */
export type FrozenSpec = z.output<typeof frozenSchema>;

export type FrozenInput =
  | { readonly type: 'frozen'; readonly model: ModelInput }
  | ({ readonly type: 'endpoint' } & EndpointOptions);

/**
 * In `assign`, an agent that plays and never trains. A model is held by the recipe's backend: a checkpoint as it is, a tiny
 * decoder as the warm start leaves it. `{ url, model }` is an OpenAI-compatible endpoint: text in, text out, with the sampling of
 * the agent; the key comes from the environment (OPENAI_API_KEY) unless given, and is never written anywhere. An endpoint need
 * not give the same answer twice: a run with one does not repeat bit for bit.
 */
export function frozen(model: ModelInput | EndpointOptions): FrozenInput {
  return 'url' in model ? { type: 'endpoint', ...model } : { type: 'frozen', model };
}
