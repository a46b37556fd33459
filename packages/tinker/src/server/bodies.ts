/**
 * The bodies of Tinker requests, as far as this server reads them. Clients also send other fields. Lengths and numbers
 * are bounded here, before any array of the engine is made.
 */

import { idFault } from '@drmas/engine/endpoints';
import { z } from 'zod';

export const CHECKPOINT_PATH = /^tinker:\/\/([\w:-]{1,100})\/(weights|sampler_weights)\/([\w-][\w.-]{0,99})$/;

/** Ids are 32-bit integers in the engine; a model's vocabulary is checked with its request. */
const MOST_IDS = 2 ** 31;
/** The most numbers in a list; a body of the longest length has fewer. */
const LONGEST_LIST = 32e6;
/** Clients send batches of 128 to 1024 datums. */
export const MOST_DATUMS = 8192;
export const MOST_CHUNKS = 4096;

const text = z.string().max(300);

/** A list with bounds for its length. Its elements are not read. */
const anyList = (most: number, least = 0) =>
  z.unknown().transform((list, context) => {
    const fits = Array.isArray(list) && list.length >= least && list.length <= most;
    if (fits) return list as unknown[];
    const message = `expected a list of ${least} to ${most}, found ${short(list)}`;
    context.addIssue({ code: 'custom', message, input: list });
    return z.NEVER;
  });

/** The elements are read only if the list has the right length: a long list of wrong elements costs nothing. */
const listOf = <Element extends z.ZodType>(element: Element, most: number, least = 0) =>
  anyList(most, least).pipe(z.array(element));

/** A list of numbers. Only its first fault is named. */
const numbersOf = (faultOf: (value: unknown) => string | undefined) =>
  anyList(LONGEST_LIST).transform((list, context) => {
    const at = list.findIndex((value) => faultOf(value) !== undefined);
    if (at < 0) return list as number[];
    context.addIssue({ code: 'custom', path: [at], message: `found ${faultOf(list[at])}`, input: list });
    return z.NEVER;
  });

const tokens = numbersOf((value) => idFault(value, MOST_IDS));
const floats = numbersOf((value) =>
  typeof value === 'number' && Number.isFinite(Math.fround(value)) ? undefined : `${short(value)}, expected a number`,
);

const chunks = listOf(
  z.discriminatedUnion('type', [z.object({ type: z.literal('encoded_text'), tokens })], {
    error: 'expected chunks of the type encoded_text: this server reads only text',
  }),
  MOST_CHUNKS,
);
const modelInput = z.object({ chunks });

const tensorOf = <Data extends z.ZodType>(data: Data) =>
  z.object({
    data,
    shape: listOf(z.int().min(0), 8).nullish(),
    sparse_crow_indices: z.null().optional(),
  });

/** The inputs that losses of this server read; others are ignored. */
const lossInputs = z.object({
  target_tokens: tensorOf(tokens).optional(),
  weights: tensorOf(floats).optional(),
  logprobs: tensorOf(floats).optional(),
  advantages: tensorOf(floats).optional(),
});

const passInput = z.object({
  data: listOf(z.object({ model_input: modelInput, loss_fn_inputs: lossInputs }), MOST_DATUMS, 1),
  loss_fn: text,
  loss_fn_config: z
    .looseObject({ clip_low_threshold: z.number().optional(), clip_high_threshold: z.number().optional() })
    .nullish(),
});

export interface PassInput {
  readonly data: readonly {
    readonly model_input: { readonly chunks: readonly { readonly tokens: ArrayLike<number> }[] };
    readonly loss_fn_inputs: Readonly<Record<string, LossInput | undefined>>;
  }[];
  readonly loss_fn: string;
  readonly loss_fn_config?: Readonly<Record<string, unknown>> | null | undefined;
}

interface LossInput {
  readonly data: ArrayLike<number>;
  readonly shape?: readonly number[] | null | undefined;
}

const ofModel = z.object({ model_id: text, seq_id: z.int().nullish() });
const name = z
  .string()
  .regex(/^[\w-][\w.-]{0,99}$/, 'expected a name of letters, digits, ".", "_" and "-"')
  .nullish();
const path = z.string().regex(CHECKPOINT_PATH, 'expected a path like tinker://MODEL/weights/NAME');

export const heartbeatBody = z.object({ session_id: text });

/** The longest path of a directory, which may name a model. */
const baseModel = z.string().max(4096);

export const createModelBody = z.object({
  session_id: text,
  model_seq_id: z.int().min(0).nullish(),
  base_model: baseModel,
  lora_config: z
    .object({
      /** Default: 32, or the most that the model's widths allow. */
      rank: z.int().min(1).optional(),
      seed: z.int().nullish(),
      /** Not in the protocol: drmas's own client sends the alpha of its recipe. */
      alpha: z.number().min(1e-6).max(1e6).nullish(),
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
export const loadBody = z
  .object({
    model_id: text.nullish(),
    session_id: text.nullish(),
    model_seq_id: z.int().min(0).nullish(),
    seq_id: z.int().nullish(),
    path,
    optimizer: z.boolean().default(false),
  })
  .refine(
    ({ model_id, session_id }) => typeof model_id === 'string' || typeof session_id === 'string',
    'expected a model_id, or a session_id',
  );

export const modelBody = ofModel;
export const weightsInfoBody = z.object({ tinker_path: path });

const source = {
  base_model: baseModel.nullish(),
  model_path: path.nullish(),
};

export const samplingSessionBody = z.object({ session_id: text, ...source });

const stopId = z.int().min(0).lt(MOST_IDS);
/** The most stop tokens or texts of a request. */
const MOST_STOPS = 256;

export const sampleBody = z.object({
  ...source,
  sampling_session_id: text.nullish(),
  num_samples: z.int().min(1).max(1024).default(1),
  prompt: modelInput,
  sampling_params: z.object({
    max_tokens: z.int().min(1).nullish(),
    seed: z.int().nullish(),
    /** Not in the protocol: the whole name of a random stream, from drmas's own client. */
    key: z.tuple([z.uint32(), z.uint32()]).nullish(),
    stop: z.union([text, listOf(text, MOST_STOPS), listOf(stopId, MOST_STOPS)]).nullish(),
    temperature: z.number().min(0).default(1),
    top_k: z.int32().min(-1).default(-1),
    top_p: z.number().gt(0).max(1).default(1),
  }),
  prompt_logprobs: z.boolean().nullish(),
  topk_prompt_logprobs: z.literal(0, 'this server gives no top-k log-probs').nullish(),
  topk_sample_logprobs: z.literal(0, 'this server gives no top-k log-probs').nullish(),
});

export type SampleBody = z.output<typeof sampleBody>;

export const retrieveBody = z.object({ request_id: text });

/** The most faults of a body that a reply names. */
const MOST_FAULTS = 3;

/** The faults of a body: of each its path, what was expected, and the value. */
export function faultsOf({ issues }: z.ZodError, body: unknown): string {
  const faults = issues.slice(0, MOST_FAULTS).map(({ path: at, message, code }) => {
    const value = code === 'custom' || code === 'unrecognized_keys' ? '' : `, found ${short(valueAt(body, at))}`;
    return `${at.length === 0 ? 'the body' : at.join('.')}: ${message}${value}`;
  });
  return issues.length > MOST_FAULTS ? `${faults.join('; ')}; and more` : faults.join('; ');
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  let value = body;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** A value in a message: lists and objects only by their kind, texts by their beginning. */
function short(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length <= 40 ? value : `${value.slice(0, 40)}...`);
  if (typeof value !== 'object' || value === null) return value === undefined ? 'nothing' : String(value);
  return Array.isArray(value) ? `a list of ${value.length}` : 'an object';
}
