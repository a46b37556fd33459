/** The bodies of Tinker requests, as far as this server reads them. Clients also send other fields. */
import { z } from 'zod';

const tokens = z.array(z.int().min(0));
const chunks = z.array(
  z.discriminatedUnion('type', [z.object({ type: z.literal('encoded_text'), tokens })], {
    error: 'expected chunks of the type encoded_text: this server reads only text',
  }),
);
const modelInput = z.object({ chunks });

const tensor = z.object({
  data: z.array(z.number()),
  shape: z.array(z.int()).nullish(),
  sparse_crow_indices: z.null().optional(),
});

const passInput = z.object({
  data: z
    .array(z.object({ model_input: modelInput, loss_fn_inputs: z.record(z.string(), tensor) }))
    .min(1, 'expected at least one datum'),
  loss_fn: z.string(),
  loss_fn_config: z.record(z.string(), z.number()).nullish(),
});

/** A batch and its loss, from JSON or protobuf. */
export interface PassInput {
  readonly data: readonly {
    readonly model_input: { readonly chunks: readonly { readonly tokens: ArrayLike<number> }[] };
    readonly loss_fn_inputs: Readonly<
      Record<string, { readonly data: ArrayLike<number>; readonly shape?: readonly number[] | null | undefined }>
    >;
  }[];
  readonly loss_fn: string;
  readonly loss_fn_config?: Readonly<Record<string, number>> | null | undefined;
}

const ofModel = z.object({ model_id: z.string(), seq_id: z.int().nullish() });
const name = z
  .string()
  .regex(/^[\w-][\w.-]{0,99}$/, 'expected a name of letters, digits, ".", "_" and "-"')
  .nullish();

export const heartbeatBody = z.object({ session_id: z.string() });

export const createModelBody = z.object({
  session_id: z.string(),
  model_seq_id: z.int().min(0).nullish(),
  base_model: z.string(),
  lora_config: z
    .object({
      rank: z.int().min(1).default(32),
      seed: z.int().nullish(),
      /** Not in the protocol: drmas's own client sends the alpha of its recipe. */
      alpha: z.number().gt(0).nullish(),
      train_attn: z.boolean().default(true),
      train_mlp: z.boolean().default(true),
    })
    .prefault({}),
});

export const forwardBody = ofModel.extend({ forward_input: passInput });
export const forwardBackwardBody = ofModel.extend({
  forward_backward_input: passInput,
  forward_only: z.boolean().default(false),
});

export const optimStepBody = ofModel.extend({
  adam_params: z.object({
    learning_rate: z.number().min(0).default(1e-4),
    beta1: z.number().min(0).lt(1).default(0.9),
    beta2: z.number().min(0).lt(1).default(0.95),
    eps: z.number().min(0).default(1e-12),
    weight_decay: z.number().min(0).default(0),
    grad_clip_norm: z.number().min(0).default(0),
  }),
});

export const saveBody = ofModel.extend({ path: name });

/** Loads weights into a model, or, if a session is named instead, into a new model. */
export const loadBody = z.object({
  model_id: z.string().nullish(),
  session_id: z.string().nullish(),
  model_seq_id: z.int().min(0).nullish(),
  seq_id: z.int().nullish(),
  path: z.string(),
  optimizer: z.boolean().default(false),
});

export const modelBody = ofModel;
export const weightsInfoBody = z.object({ tinker_path: z.string() });

const source = {
  base_model: z.string().nullish(),
  model_path: z.string().nullish(),
};

export const samplingSessionBody = z.object({ session_id: z.string(), ...source });

export const sampleBody = z.object({
  ...source,
  sampling_session_id: z.string().nullish(),
  num_samples: z.int().min(1).max(1024).default(1),
  prompt: modelInput,
  sampling_params: z.object({
    max_tokens: z.int().min(1).nullish(),
    seed: z.int().nullish(),
    /** Not in the protocol: the whole name of a random stream, from drmas's own client. */
    key: z.tuple([z.uint32(), z.uint32()]).nullish(),
    stop: z.union([z.string(), z.array(z.string()), z.array(z.int())]).nullish(),
    temperature: z.number().min(0).default(1),
    top_k: z.int().min(-1).default(-1),
    top_p: z.number().gt(0).max(1).default(1),
  }),
  prompt_logprobs: z.boolean().nullish(),
  topk_prompt_logprobs: z.literal(0, 'this server gives no top-k log-probs').nullish(),
  topk_sample_logprobs: z.literal(0, 'this server gives no top-k log-probs').nullish(),
});

export type SampleBody = z.output<typeof sampleBody>;

export const retrieveBody = z.object({ request_id: z.string() });
