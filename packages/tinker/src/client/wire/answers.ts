/** The protocol's replies, as far as this client reads them. Servers add fields of their own. */
import { z } from 'zod';

/** JSON has no NaN: servers write null, or send no answer. Either is a failed step if the number is needed. */
const numbers = z.array(z.number().nullable());
const metrics = z.record(z.string(), z.number().nullable()).nullish();

export const sessionAnswer = z.object({ session_id: z.string() });

export const heartbeatAnswer = z.unknown();

export const capabilitiesAnswer = z.object({
  supported_models: z.array(z.object({ model_name: z.string() })).default([]),
  /** The server is drmas's own. */
  drmas: z.object({ version: z.string() }).optional(),
});

/** Some servers number their futures. */
export const futureAnswer = z.object({
  request_id: z.union([z.string(), z.number()]).transform(String),
  model_id: z.string().nullish(),
});

export const modelAnswer = z.object({
  model_id: z.string().nullish(),
  lora_config: z.looseObject({ alpha: z.number().nullish() }).nullish(),
});

export const passAnswer = z.object({
  loss_fn_outputs: z.array(z.object({ logprobs: z.object({ data: numbers }) })),
  metrics,
});

export const stepAnswer = z.object({ metrics });

export const savedAnswer = z.object({
  path: z.string().nullish(),
  sampling_session_id: z.string().nullish(),
});

export const doneAnswer = z.unknown();

export const samplingSessionAnswer = z.object({ sampling_session_id: z.string() });

export const sampleAnswer = z.object({
  sequences: z
    .array(
      z.object({
        /** Checked with the model's vocabulary (`checkedAnswer`). */
        tokens: z.array(z.unknown()),
        logprobs: z.array(z.unknown()).nullish(),
        stop_reason: z.enum(['stop', 'length']),
      }),
    )
    .min(1),
  prompt_logprobs: numbers.nullish(),
});

/** One number per target token. */
export interface Tensor {
  readonly data: readonly number[];
  readonly dtype: 'int64' | 'float32';
  readonly shape: readonly [number];
}

/** A sequence to learn from: T - 1 input tokens and as many targets, each the token after its input. */
export interface Datum {
  readonly model_input: { readonly chunks: readonly [{ readonly type: 'encoded_text'; readonly tokens: number[] }] };
  readonly loss_fn_inputs: { readonly target_tokens: Tensor } & { readonly [input: string]: Tensor };
}

export type ServerLoss = 'cross_entropy' | 'importance_sampling' | 'ppo' | 'cispo';

export interface PassInput {
  readonly data: readonly Datum[];
  readonly loss_fn: ServerLoss;
  readonly loss_fn_config?: Readonly<Record<string, number>>;
}
