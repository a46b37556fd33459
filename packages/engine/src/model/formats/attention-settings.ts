/** Attention in config.json: the rotation of positions, sliding windows, and short convolutions in its place. */
import { z } from 'zod';
import type { DecoderConfig, RopeScaling, ShortConvolution, SlidingWindow } from '../../contract/architecture.js';
import { CheckpointError } from '../../errors.js';
import { parseWith } from './validated-json.js';

const positive = z.number().positive();

/** The layers, counted from 0, for which the condition holds. */
export const layersWhere = (layers: number, holds: (layer: number) => unknown): number[] =>
  Array.from({ length: layers }, (_, layer) => layer).filter(holds);

const ropeSettings = z.looseObject({
  rope_theta: positive.optional(),
  rope_type: z.string().optional(),
  type: z.string().optional(),
  partial_rotary_factor: z.literal(1).nullish(),
});
const linear = z.looseObject({ factor: positive });
const llama3 = z.looseObject({
  factor: positive,
  low_freq_factor: positive,
  high_freq_factor: positive,
  original_max_position_embeddings: z.int().positive(),
});

interface Rope {
  readonly base: number;
  readonly scaling?: RopeScaling;
}

/**
 * Reads the rotary embedding from either generation of config.json: `rope_theta` and `rope_scaling`, or both in
 * `rope_parameters`.
 * @param defaultBase The family's base if the file names none
 * @throws CheckpointError when it is malformed or of an unsupported kind, or given twice and not alike
 */
export function readRope(raw: Readonly<Record<string, unknown>>, file: string, defaultBase: number): Rope {
  const isGiven = (key: string) => Object.keys(raw[key] ?? {}).length > 0;
  const older = readRopeIn('rope_scaling', raw, file, defaultBase);
  if (!isGiven('rope_parameters')) return older;
  const rope = readRopeIn('rope_parameters', raw, file, defaultBase);
  // transformers 5 takes the older key, and not the base of the newer one.
  if (isGiven('rope_scaling') && !isSame(rope, older))
    throw new CheckpointError(`${file}: rope_scaling says another than rope_parameters, expected one of them`);
  return rope;
}

const isSame = (one: Rope, other: Rope) => JSON.stringify(one) === JSON.stringify(other);

function readRopeIn(
  key: 'rope_parameters' | 'rope_scaling',
  raw: Readonly<Record<string, unknown>>,
  file: string,
  defaultBase: number,
): Rope {
  const settings = parseWith(ropeSettings, raw[key] ?? {}, file, key);
  const base = settings.rope_theta ?? parseWith(positive.nullish(), raw.rope_theta, file, 'rope_theta') ?? defaultBase;
  const type = settings.rope_type ?? settings.type ?? 'default';
  switch (type) {
    case 'default':
      return { base };
    case 'linear':
      return { base, scaling: { type, factor: parseWith(linear, settings, file, key).factor } };
    case 'llama3': {
      const scaling = parseWith(llama3, settings, file, key);
      return {
        base,
        scaling: {
          type,
          factor: scaling.factor,
          lowFrequencyFactor: scaling.low_freq_factor,
          highFrequencyFactor: scaling.high_freq_factor,
          originalContext: scaling.original_max_position_embeddings,
        },
      };
    }
    default:
      throw new CheckpointError(
        `${file}: ${key} of the kind "${type}" is not supported, expected default, linear or llama3`,
      );
  }
}

export function writeRope(scaling: RopeScaling | undefined): Record<string, unknown> | null {
  if (scaling === undefined) return null;
  const { type, factor } = scaling;
  if (type === 'linear') return { rope_type: type, factor };
  return {
    rope_type: type,
    factor,
    low_freq_factor: scaling.lowFrequencyFactor,
    high_freq_factor: scaling.highFrequencyFactor,
    original_max_position_embeddings: scaling.originalContext,
  };
}

/** Mistral's window if a file names none, as transformers has it. */
const MISTRAL_WINDOW = 4096;
const mistralAttention = z.looseObject({
  num_hidden_layers: z.int(),
  max_position_embeddings: z.int(),
  sliding_window: z.int().positive().nullish(),
});

/**
 * Reads the window of Mistral, which all layers have or none. One that holds the whole context is none.
 * @param rope The rotation of all layers
 * @throws CheckpointError when it is malformed, or positions are stretched beside it
 */
export function readMistralWindow(
  json: unknown,
  file: string,
  rope: ReturnType<typeof readRope>,
): Pick<DecoderConfig, 'slidingWindow'> {
  const raw = parseWith(mistralAttention, json, file);
  const { num_hidden_layers: layers, sliding_window: positions = MISTRAL_WINDOW } = raw;
  if (positions === null || positions >= raw.max_position_embeddings) return {};
  if (rope.scaling !== undefined)
    throw new CheckpointError(`${file}: sliding_window = ${positions} is not supported beside stretched positions`);
  return { slidingWindow: { positions, layers: layersWhere(layers, () => true), ropeBase: rope.base } };
}

const GEMMA_BASES = { full: 1_000_000, sliding: 10_000 } as const;
/** The layers of Gemma 3 that see all positions if a file does not list them: the last one of each interval. */
const GEMMA_INTERVAL = 6;
/** Values of keys that a file of Gemma 3 may lack, as transformers has them. */
const GEMMA_WINDOW = 4096;
const GEMMA_DIVISOR = 256;

const SLIDING = 'sliding_attention';
const gemmaAttention = z.looseObject({
  num_hidden_layers: z.int(),
  rope_parameters: z
    .looseObject({ full_attention: z.unknown().optional(), sliding_attention: z.unknown().optional() })
    .nullish(),
  rope_local_base_freq: positive.nullish(),
  query_pre_attn_scalar: positive.nullish(),
  sliding_window: z.int().positive().optional(),
  sliding_window_pattern: z.int().positive().nullish(),
  layer_types: z.array(z.enum([SLIDING, 'full_attention'])).nullish(),
});

type GemmaAttention = Pick<DecoderConfig, 'ropeBase' | 'ropeScaling' | 'slidingWindow' | 'scoreDivisor'>;

/**
 * Reads the attention of Gemma 3 from either generation of config.json. Layers with a sliding window have a rotation of
 * their own.
 * @throws CheckpointError when it is malformed or of an unsupported kind
 */
export function readGemmaAttention(json: unknown, file: string, headDim: number): GemmaAttention {
  const raw = parseWith(gemmaAttention, json, file);
  const { num_hidden_layers: layers, layer_types: types, sliding_window_pattern: interval } = raw;
  if (types && types.length !== layers)
    throw new CheckpointError(`${file}: layer_types: expected ${layers} names, found ${types.length}`);
  const sliding = layersWhere(layers, (layer) =>
    types ? types[layer] === SLIDING : (layer + 1) % (interval ?? GEMMA_INTERVAL) !== 0,
  );
  const { rope_parameters: ropes, rope_local_base_freq: ofSliding } = raw;
  const isSplit = ropes?.full_attention !== undefined || ropes?.sliding_attention !== undefined;
  const full = readRope(isSplit ? { ...raw, rope_parameters: ropes.full_attention } : raw, file, GEMMA_BASES.full);
  const slidingBase = { rope_theta: ofSliding, rope_parameters: isSplit ? ropes.sliding_attention : undefined };
  const local = readRope(slidingBase, file, GEMMA_BASES.sliding);
  if (local.scaling)
    throw new CheckpointError(`${file}: rope_parameters: sliding_attention must be of the default kind`);
  const scoreDivisor = raw.query_pre_attn_scalar ?? GEMMA_DIVISOR;
  return {
    ropeBase: full.base,
    ...(full.scaling && { ropeScaling: full.scaling }),
    ...(sliding.length > 0 && {
      slidingWindow: {
        positions: raw.sliding_window ?? GEMMA_WINDOW,
        layers: sliding,
        ropeBase: local.base,
      } satisfies SlidingWindow,
    }),
    ...(scoreDivisor !== headDim && { scoreDivisor }),
  };
}

export function writeGemmaAttention({ layers, headDim, scoreDivisor, slidingWindow }: DecoderConfig) {
  return {
    query_pre_attn_scalar: scoreDivisor ?? headDim,
    sliding_window: slidingWindow?.positions ?? GEMMA_WINDOW,
    rope_local_base_freq: slidingWindow?.ropeBase ?? GEMMA_BASES.sliding,
    layer_types: Array.from({ length: layers }, (_, layer) =>
      slidingWindow?.layers.includes(layer) ? SLIDING : 'full_attention',
    ),
    attn_logit_softcapping: null,
    final_logit_softcapping: null,
  };
}

const CONVOLUTION = 'conv';
/** Values of keys that a file of LFM2 may lack, as transformers has them. */
const LFM2 = { normEpsilon: 1e-5, taps: 3, multiplier: 1, multiple: 256 } as const;

const size = z.int().positive().nullish();
const lfm2File = z.looseObject({
  num_hidden_layers: z.int(),
  layer_types: z.array(z.enum([CONVOLUTION, 'full_attention'])).nullish(),
  full_attn_idxs: z.array(z.int().nonnegative()).nullish(),
  conv_L_cache: size,
  norm_eps: positive.nullish(),
  tie_embedding: z.boolean().nullish(),
  intermediate_size: size,
  block_ff_dim: size,
  block_auto_adjust_ff_dim: z.boolean().nullish(),
  block_ffn_dim_multiplier: positive.nullish(),
  block_multiple_of: size,
});

/**
 * Reads the layers of LFM2 that convolve, and the keys that have other names or another meaning there than in other
 * families.
 * @returns `common`: those keys as other families have them
 * @throws CheckpointError when the file is malformed or no layer convolves
 */
export function readLfm2(
  json: unknown,
  file: string,
): { readonly convolution: ShortConvolution; readonly common: object } {
  const raw = parseWith(lfm2File, json, file);
  const { num_hidden_layers: layers, layer_types: types, full_attn_idxs: attending } = raw;
  if (types && types.length !== layers)
    throw new CheckpointError(`${file}: layer_types: expected ${layers} names, found ${types.length}`);
  const convolving = layersWhere(layers, (layer) =>
    types ? types[layer] === CONVOLUTION : attending && !attending.includes(layer),
  );
  if (convolving.length === 0)
    throw new CheckpointError(`${file}: expected a layer that convolves in layer_types or full_attn_idxs`);
  return {
    convolution: { taps: raw.conv_L_cache ?? LFM2.taps, layers: convolving },
    common: {
      rms_norm_eps: raw.norm_eps ?? LFM2.normEpsilon,
      intermediate_size: lfm2FeedForward(raw),
      ...(raw.tie_embedding !== undefined && { tie_word_embeddings: raw.tie_embedding }),
      attention_bias: false,
    },
  };
}

/** The width of LFM2's feed-forward layers, which a file may give before it is adjusted. */
function lfm2FeedForward(raw: z.infer<typeof lfm2File>): number | undefined {
  const width = raw.block_ff_dim ?? raw.intermediate_size ?? undefined;
  if (width === undefined || raw.block_auto_adjust_ff_dim === false) return width;
  const gated = Math.trunc((2 * width) / 3);
  const { block_ffn_dim_multiplier: multiplier = LFM2.multiplier, block_multiple_of: multiple } = raw;
  if (multiplier === null) return gated;
  return Math.ceil(Math.trunc(multiplier * gated) / (multiple ?? LFM2.multiple)) * (multiple ?? LFM2.multiple);
}

export function writeLfm2({ layers, normEpsilon, convolution }: DecoderConfig) {
  const convolves = Array.from({ length: layers }, (_, layer) => convolution?.layers.includes(layer) ?? false);
  return {
    norm_eps: normEpsilon,
    block_auto_adjust_ff_dim: false,
    conv_L_cache: convolution?.taps ?? LFM2.taps,
    conv_bias: false,
    layer_types: convolves.map((each) => (each ? CONVOLUTION : 'full_attention')),
    full_attn_idxs: convolves.flatMap((each, layer) => (each ? [] : layer)),
  };
}
