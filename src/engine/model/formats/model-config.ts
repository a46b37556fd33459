/**
 * config.json of Hugging Face directories, as transformers 4 and 5 write it, for the Llama, Qwen2 and Qwen3 families.
 */
import { z } from 'zod';
import { CheckpointError } from '../../../base/errors.js';
import type { DecoderConfig } from '../../contract/architecture.js';
import { readRope, writeRope } from './rope-settings.js';
import { parseWith } from './validated-json.js';

/** The families, by their names in config.json and in llama.cpp. */
export const ARCHITECTURES = ['llama', 'qwen2', 'qwen3'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** Limits of a description: lists by layer are allocated, and the rotary table has a row for each position. */
export const CONFIG_LIMITS = { layers: 10_000, context: 2 ** 20 } as const;

/** The description of a decoder in a config.json or a GGUF file. */
export interface DescribedModel {
  readonly architecture: Architecture;
  readonly config: DecoderConfig;
  /** The ids that end a text; empty when the file names none. */
  readonly stopTokens: readonly number[];
  /**
   * The number format of the weights according to the file, such as `bfloat16`; undefined if the file names none.
   */
  readonly dtype: string | undefined;
}

const architectures: ReadonlyMap<string, Architecture> = new Map([
  ['LlamaForCausalLM', 'llama'],
  ['Qwen2ForCausalLM', 'qwen2'],
  ['Qwen3ForCausalLM', 'qwen3'],
]);

const configFile = z.looseObject({
  architectures: z.array(z.string()).nullish(),
  model_type: z.string().nullish(),
  vocab_size: z.int().positive(),
  hidden_size: z.int().positive(),
  num_hidden_layers: z.int().positive().max(CONFIG_LIMITS.layers),
  num_attention_heads: z.int().positive(),
  num_key_value_heads: z.int().positive().nullish(),
  head_dim: z.int().positive().nullish(),
  intermediate_size: z.int().positive(),
  max_position_embeddings: z.int().positive().max(CONFIG_LIMITS.context),
  rms_norm_eps: z.number().positive(),
  tie_word_embeddings: z.boolean().nullish(),
  attention_bias: z.boolean().nullish(),
  dtype: z.string().nullish(),
  torch_dtype: z.string().nullish(),
});
type ConfigFile = z.infer<typeof configFile>;

const id = z.int().nonnegative();
const stopTokensFile = z.looseObject({ eos_token_id: z.union([id, z.array(id)]).nullish() });

/**
 * Reads the parsed contents of a config.json.
 * @throws CheckpointError naming the key and the expected value, or the feature of the model that is not supported
 */
export function readConfig(json: unknown, file = 'config.json'): DescribedModel {
  const raw = parseWith(configFile, json, file);
  const architecture = readArchitecture(raw, file);
  refuseVariants(raw, file);
  const rope = readRope(raw, file);
  return {
    architecture,
    config: {
      vocabSize: raw.vocab_size,
      width: raw.hidden_size,
      layers: raw.num_hidden_layers,
      ...readHeads(raw, architecture, file),
      feedForward: raw.intermediate_size,
      context: raw.max_position_embeddings,
      ropeBase: rope.base,
      normEpsilon: raw.rms_norm_eps,
      ...(rope.scaling && { ropeScaling: rope.scaling }),
      ...(architecture === 'qwen2' && { attentionBias: 'qkv' }),
      ...(architecture !== 'qwen2' && raw.attention_bias && { attentionBias: 'qkvo' }),
      ...(architecture === 'qwen3' && { queryKeyNorm: true }),
      ...(!raw.tie_word_embeddings && { untiedOutput: true }),
    },
    stopTokens: readStopTokens(json, file),
    dtype: raw.dtype ?? raw.torch_dtype ?? undefined,
  };
}

/**
 * Reads the ids that end a text from the parsed contents of a config.json or generation_config.json.
 * @throws CheckpointError when they are malformed
 */
export function readStopTokens(json: unknown, file: string): readonly number[] {
  const ids = parseWith(stopTokensFile, json, file).eos_token_id;
  return typeof ids === 'number' ? [ids] : (ids ?? []);
}

/** The ids that end a text, as `eos_token_id` has them. */
export const writeStopTokens = (ids: readonly number[]) => (ids.length > 1 ? ids : (ids[0] ?? null));

/**
 * The contents of a config.json for a decoder in float32, of the family that has its features. It has the form of
 * transformers 4, which transformers 5 reads as well.
 */
export function writeConfig(config: DecoderConfig, stopTokens: readonly number[]): Record<string, unknown> {
  const family = familyOf(config);
  return {
    architectures: [...architectures].flatMap(([name, architecture]) => (architecture === family ? name : [])),
    model_type: family,
    vocab_size: config.vocabSize,
    hidden_size: config.width,
    intermediate_size: config.feedForward,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    max_position_embeddings: config.context,
    hidden_act: 'silu',
    rms_norm_eps: config.normEpsilon,
    rope_theta: config.ropeBase,
    rope_scaling: writeRope(config.ropeScaling),
    ...(family !== 'qwen2' && { attention_bias: config.attentionBias === 'qkvo' }),
    ...(family === 'llama' && { mlp_bias: false }),
    tie_word_embeddings: !config.untiedOutput,
    torch_dtype: 'float32',
    bos_token_id: null,
    eos_token_id: writeStopTokens(stopTokens),
    pad_token_id: null,
  };
}

/** The family that has a decoder's features. */
export function familyOf({ attentionBias, queryKeyNorm }: DecoderConfig): Architecture {
  if (queryKeyNorm) return 'qwen3';
  return attentionBias === 'qkv' ? 'qwen2' : 'llama';
}

function readArchitecture(raw: ConfigFile, file: string): Architecture {
  const name = raw.architectures?.[0];
  const architecture =
    name === undefined
      ? [...architectures.values()].find((family) => family === raw.model_type)
      : architectures.get(name);
  if (architecture !== undefined) return architecture;
  const unsupported = name ?? raw.model_type ?? 'none';
  throw new CheckpointError(
    `${file}: architecture "${unsupported}" is not supported, expected one of ${[...architectures.keys()].join(', ')}`,
  );
}

/** Refuses variants of the three families whose arithmetic the engine lacks. @throws CheckpointError */
function refuseVariants(raw: ConfigFile, file: string): void {
  const normal: Record<string, (value: unknown) => boolean> = {
    hidden_act: (value) => value === 'silu',
    mlp_bias: (value) => value === false,
    use_sliding_window: (value) => value === false,
    layer_types: (value) => Array.isArray(value) && value.every((type) => type === 'full_attention'),
    partial_rotary_factor: (value) => value === 1,
    quantization_config: () => false,
  };
  for (const [key, isNormal] of Object.entries(normal)) {
    const value = raw[key];
    if (value === undefined || value === null || isNormal(value)) continue;
    throw new CheckpointError(`${file}: ${key} = ${JSON.stringify(value)} is not supported`);
  }
}

function readHeads(raw: ConfigFile, architecture: Architecture, file: string) {
  const heads = raw.num_attention_heads;
  const kvHeads = raw.num_key_value_heads ?? heads;
  const headDim = raw.head_dim ?? (architecture === 'qwen3' ? 128 : raw.hidden_size / heads);
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    throw new CheckpointError(`${file}: expected an even number of values a head, found ${headDim}`);
  }
  if (heads % kvHeads !== 0) {
    throw new CheckpointError(`${file}: ${heads} heads cannot share ${kvHeads} key/value heads evenly`);
  }
  return { heads, kvHeads, headDim };
}
