/**
 * config.json of Hugging Face directories, as transformers 4 and 5 write it, for the Llama, Qwen2, Qwen3, SmolLM3,
 * Gemma 3 and LFM2 families. Mistral models are Llama models, some with sliding windows.
 */
import { z } from 'zod';
import type { DecoderConfig } from '../../contract/architecture.js';
import { CheckpointError } from '../../errors.js';
import type { BlockFormats } from '../decoder/weights/decoder-tensors.js';
import {
  layersWhere,
  readGemmaAttention,
  readLfm2,
  readMistralWindow,
  readRope,
  writeGemmaAttention,
  writeLfm2,
  writeRope,
} from './attention-settings.js';
import { parseWith } from './validated-json.js';

/** The families, by their names in config.json and in llama.cpp. */
export const ARCHITECTURES = ['llama', 'qwen2', 'qwen3', 'smollm3', 'gemma3', 'lfm2'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** Limits of a description: lists by layer are allocated, and the rotary table has a row for each position. */
export const CONFIG_LIMITS = { layers: 10_000, context: 2 ** 20 } as const;

export interface DescribedModel {
  readonly architecture: Architecture;
  readonly config: DecoderConfig;
  /** The ids that end a text; empty when the file names none. */
  readonly stopTokens: readonly number[];
  /**
   * The number format of the weights according to the file, such as `bfloat16`; undefined if the file names none.
   */
  readonly dtype: string | undefined;
  /** The formats of the matrices if products can read all of them in the blocks of the file. */
  readonly blocks?: BlockFormats | undefined;
}

/** A class of transformers: its family, and its values of keys that a config.json may lack. */
interface ModelClass {
  readonly name: string;
  readonly type: string;
  readonly architecture: Architecture;
  readonly ropeBase: number;
  readonly tiedOutput: boolean;
  readonly defaults: Readonly<Record<string, number>>;
}

const base = { ropeBase: 10_000, tiedOutput: false } as const;
const MISTRAL = 'mistral';

/** Values of keys that a config.json may lack, as transformers 5.24 has them. */
const common = { num_hidden_layers: 32, num_attention_heads: 32, hidden_size: 4096, rms_norm_eps: 1e-6 } as const;
const llama = { ...common, vocab_size: 32_000, intermediate_size: 11_008, max_position_embeddings: 2048 };
const mistral = { ...llama, intermediate_size: 14_336, max_position_embeddings: 131_072, num_key_value_heads: 8 };
const qwen = {
  ...{ ...common, vocab_size: 151_936, intermediate_size: 22_016 },
  ...{ max_position_embeddings: 32_768, num_key_value_heads: 32 },
};
const smollm3 = {
  ...{ ...common, vocab_size: 128_256, hidden_size: 2048, intermediate_size: 11_008, max_position_embeddings: 32_768 },
  ...{ num_hidden_layers: 36, num_attention_heads: 16, num_key_value_heads: 4 },
};
const gemma3 = {
  ...{ ...common, vocab_size: 262_208, hidden_size: 2304, intermediate_size: 9216, max_position_embeddings: 131_072 },
  ...{ num_hidden_layers: 26, num_attention_heads: 8, num_key_value_heads: 4 },
};
const lfm2 = {
  ...{ ...common, vocab_size: 65_536, hidden_size: 2560, intermediate_size: 12_288, max_position_embeddings: 128_000 },
  num_key_value_heads: 8,
};

const classes: readonly ModelClass[] = [
  { name: 'LlamaForCausalLM', type: 'llama', architecture: 'llama', ...base, defaults: llama },
  { name: 'MistralForCausalLM', type: MISTRAL, architecture: 'llama', ...base, defaults: mistral },
  { name: 'Qwen2ForCausalLM', type: 'qwen2', architecture: 'qwen2', ...base, defaults: qwen },
  { name: 'Qwen3ForCausalLM', type: 'qwen3', architecture: 'qwen3', ...base, defaults: qwen },
  {
    ...{ name: 'SmolLM3ForCausalLM', type: 'smollm3', architecture: 'smollm3', defaults: smollm3 },
    ...{ ropeBase: 2_000_000, tiedOutput: true },
  },
  {
    ...{ name: 'Gemma3ForCausalLM', type: 'gemma3_text', architecture: 'gemma3', defaults: gemma3 },
    ...{ ropeBase: 1_000_000, tiedOutput: true },
  },
  {
    ...{ name: 'Lfm2ForCausalLM', type: 'lfm2', architecture: 'lfm2', defaults: lfm2 },
    ...{ ropeBase: 1_000_000, tiedOutput: true },
  },
];

/** The reasons why the engine cannot compute some known families, by the beginnings of their names. */
const UNREAD: readonly (readonly [name: string, reason: string])[] = [
  ['gemma', 'of the Gemma models only the text models of Gemma 3 are read, and not as GGUF files'],
  ['lfm2', 'of the LFM2 models only the dense text models are read, and not as GGUF files'],
  ['mixtral', 'mixtures of experts are not read'],
  ['qwen2moe', 'mixtures of experts are not read'],
  ['qwen3moe', 'mixtures of experts are not read'],
  ['glm4moe', 'mixtures of experts are not read'],
  ['glm', 'its files hold both inputs of a gate in one tensor'],
  ['phi3', 'its files hold queries, keys and values in one tensor'],
  ['phi4', 'its files hold queries, keys and values in one tensor'],
  ['qwen35', 'layers of linear attention are not read'],
  ['qwen3next', 'layers of linear attention are not read'],
];

/** The end of a message that refuses an architecture: the reason if it is known, then the expected names. */
export function unreadReason(architecture: string, expected: readonly string[]): string {
  const key = architecture.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const reason = UNREAD.find(([name]) => key.startsWith(name))?.[1];
  return `${reason === undefined ? '' : `: ${reason}`}, expected one of ${expected.join(', ')}`;
}

const GELU = 'gelu_pytorch_tanh';
/** The values a head if a file names none; in other families the heads share the width. */
const HEAD_DIMS: Partial<Record<Architecture, number>> = { qwen3: 128, gemma3: 256 };
/** The interval of SmolLM3's layers without rotation if a file names none. */
const UNROTATED_INTERVAL = 4;

const classFile = z.looseObject({
  architectures: z.array(z.string()).nullish(),
  model_type: z.string().nullish(),
});
const configFile = classFile.extend({
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
  no_rope_layers: z.array(z.union([z.literal(0), z.literal(1)])).nullish(),
  no_rope_layer_interval: z.int().positive().nullish(),
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
  const given = parseWith(classFile, json, file);
  const { architecture, ropeBase, tiedOutput, type, defaults } = readClass(given, file);
  const described = { ...defaults, ...given };
  const lfm2 = architecture === 'lfm2' ? readLfm2(described, file) : undefined;
  const raw = parseWith(configFile, { ...described, ...lfm2?.common }, file);
  refuseVariants(raw, architecture, file);
  const isGemma = architecture === 'gemma3';
  const heads = readHeads(raw, architecture, file);
  const rope = isGemma ? undefined : readRope(raw, file, ropeBase);
  const unrotatedLayers = architecture === 'smollm3' ? readUnrotated(raw, file) : [];
  return {
    architecture,
    config: {
      vocabSize: raw.vocab_size,
      width: raw.hidden_size,
      layers: raw.num_hidden_layers,
      ...heads,
      feedForward: raw.intermediate_size,
      context: raw.max_position_embeddings,
      ropeBase: rope?.base ?? ropeBase,
      normEpsilon: raw.rms_norm_eps,
      ...(rope?.scaling && { ropeScaling: rope.scaling }),
      ...(architecture === 'qwen2' && { attentionBias: 'qkv' }),
      ...(architecture !== 'qwen2' && raw.attention_bias && { attentionBias: 'qkvo' }),
      ...((architecture === 'qwen3' || isGemma || lfm2) && { queryKeyNorm: true }),
      ...(isGemma && { gate: 'gelu', offsetNorms: true, resultNorms: true, scaledEmbedding: true }),
      ...(isGemma && readGemmaAttention(raw, file, heads.headDim)),
      ...(type === MISTRAL && rope && readMistralWindow(raw, file, rope)),
      ...(unrotatedLayers.length > 0 && { unrotatedLayers }),
      ...(lfm2 && { convolution: lfm2.convolution }),
      ...(!(raw.tie_word_embeddings ?? tiedOutput) && { untiedOutput: true }),
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

export const writeStopTokens = (ids: readonly number[]) => (ids.length > 1 ? ids : (ids[0] ?? null));

/**
 * The contents of a config.json for a decoder in float32, of the family that has its features. It has the form of
 * transformers 4, which transformers 5 reads as well.
 */
export function writeConfig(config: DecoderConfig, stopTokens: readonly number[]): Record<string, unknown> {
  const family = familyOf(config);
  const isLfm2 = family === 'lfm2';
  // transformers refuses a Llama model whose heads do not divide its width; Mistral's have any size, but no biases.
  const isUneven = config.width % config.heads !== 0 && config.attentionBias === undefined;
  const isMistral = family === 'llama' && (config.slidingWindow !== undefined || isUneven);
  const known = classes.find(({ architecture, type }) => architecture === family && (type === MISTRAL) === isMistral);
  return {
    architectures: [known?.name],
    model_type: known?.type,
    vocab_size: config.vocabSize,
    hidden_size: config.width,
    intermediate_size: config.feedForward,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    max_position_embeddings: config.context,
    ...(family === 'gemma3' && { hidden_activation: GELU, ...writeGemmaAttention(config) }),
    ...(family !== 'gemma3' && !isLfm2 && { hidden_act: 'silu' }),
    ...(isMistral && { sliding_window: config.slidingWindow?.positions ?? null }),
    ...(isLfm2 ? writeLfm2(config) : { rms_norm_eps: config.normEpsilon }),
    rope_theta: config.ropeBase,
    rope_scaling: writeRope(config.ropeScaling),
    ...(family !== 'qwen2' && !isLfm2 && !isMistral && { attention_bias: config.attentionBias === 'qkvo' }),
    ...(((family === 'llama' && !isMistral) || family === 'smollm3') && { mlp_bias: false }),
    ...(family === 'smollm3' && {
      no_rope_layers: rotatedLayers(config).map(Number),
      no_rope_layer_interval: UNROTATED_INTERVAL,
      use_sliding_window: false,
    }),
    tie_word_embeddings: !config.untiedOutput,
    torch_dtype: 'float32',
    bos_token_id: null,
    eos_token_id: writeStopTokens(stopTokens),
    pad_token_id: null,
  };
}

export function familyOf(config: DecoderConfig): Architecture {
  const { attentionBias, offsetNorms, queryKeyNorm, unrotatedLayers } = config;
  if (config.convolution !== undefined) return 'lfm2';
  if (offsetNorms) return 'gemma3';
  if (unrotatedLayers !== undefined) return 'smollm3';
  if (queryKeyNorm) return 'qwen3';
  return attentionBias === 'qkv' ? 'qwen2' : 'llama';
}

/** Whether each layer rotates queries and keys [layers]. */
const rotatedLayers = ({ layers, unrotatedLayers }: DecoderConfig): boolean[] =>
  Array.from({ length: layers }, (_, layer) => !unrotatedLayers?.includes(layer));

/** The layers that SmolLM3 does not rotate if a file names none: the last one of each interval. */
export const unrotatedByDefault = (layers: number, interval = UNROTATED_INTERVAL): number[] =>
  layersWhere(layers, (layer) => (layer + 1) % interval === 0);

/** Reads SmolLM3's layers without rotation. In `no_rope_layers` a 1 is a layer that rotates. */
function readUnrotated(raw: ConfigFile, file: string): number[] {
  const { no_rope_layers: rotates, num_hidden_layers: layers } = raw;
  if (!rotates) return unrotatedByDefault(layers, raw.no_rope_layer_interval ?? undefined);
  if (rotates.length < layers)
    throw new CheckpointError(`${file}: no_rope_layers: expected ${layers} numbers, found ${rotates.length}`);
  return rotates.slice(0, layers).flatMap((each, layer) => (each === 0 ? [layer] : []));
}

function readClass(raw: z.infer<typeof classFile>, file: string): ModelClass {
  const name = raw.architectures?.[0];
  const known = classes.find((each) => (name === undefined ? each.type === raw.model_type : each.name === name));
  if (known !== undefined) return known;
  const unsupported = name ?? raw.model_type ?? 'none';
  const names = classes.map((each) => each.name);
  throw new CheckpointError(
    `${file}: architecture "${unsupported}" is not supported${unreadReason(unsupported, names)}`,
  );
}

/** Refuses variants of the families whose arithmetic the engine lacks. @throws CheckpointError */
function refuseVariants(raw: ConfigFile, architecture: Architecture, file: string): void {
  const ofFamilies: Partial<Record<Architecture, Record<string, (value: unknown) => boolean>>> = {
    gemma3: { hidden_activation: (value) => value === GELU, use_bidirectional_attention: (value) => value === false },
    lfm2: { conv_bias: (value) => value === false },
  };
  const ofFamily = ofFamilies[architecture] ?? {
    hidden_act: (value) => value === 'silu' || value === 'swish',
    layer_types: (value) => Array.isArray(value) && value.every((type) => type === 'full_attention'),
  };
  const normal: Record<string, (value: unknown) => boolean> = {
    ...ofFamily,
    attn_logit_softcapping: () => false,
    final_logit_softcapping: () => false,
    mlp_bias: (value) => value === false,
    use_sliding_window: (value) => value === false,
    partial_rotary_factor: (value) => value === 1,
    quantization_config: () => false,
    quantization: () => false, // of MLX
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
  const headDim = raw.head_dim ?? HEAD_DIMS[architecture] ?? raw.hidden_size / heads;
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    throw new CheckpointError(`${file}: expected an even number of values a head, found ${headDim}`);
  }
  if (heads % kvHeads !== 0) {
    throw new CheckpointError(`${file}: ${heads} heads cannot share ${kvHeads} key/value heads evenly`);
  }
  if (architecture === 'lfm2' && heads * headDim !== raw.hidden_size) {
    throw new CheckpointError(`${file}: expected ${raw.hidden_size} values in all heads, found ${heads * headDim}`);
  }
  return { heads, kvHeads, headDim };
}
