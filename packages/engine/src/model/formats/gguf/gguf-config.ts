/** The description of a decoder in the metadata of a GGUF file. */

import type { DecoderConfig, RopeScaling } from '../../../contract/architecture.js';
import { CheckpointError } from '../../../errors.js';
import { ARCHITECTURES, type Architecture, CONFIG_LIMITS, unreadReason, unrotatedByDefault } from '../model-config.js';
import type { GgufHeader, GgufMetadataValue } from './gguf-header.js';
import { ggufName, KEYS, ROPE_FACTORS } from './gguf-names.js';

/** A decoder's description, and llama.cpp's architecture, which decides the order of rows. */
export interface GgufDecoder {
  readonly architecture: Architecture;
  readonly config: DecoderConfig;
}

/**
 * Files of Gemma 3 hold a SentencePiece model with scores instead of merges, which drmas cannot read. LFM2's layers
 * are of two kinds, whose tensors gguf-names.ts has no names for.
 */
const GGUF_ARCHITECTURES = ARCHITECTURES.filter((each) => each !== 'gemma3' && each !== 'lfm2');

/** Models of the architecture `llama` that need more arithmetic than a Llama decoder's. */
const VARIANTS: Readonly<Record<string, string>> = {
  expert_count: 'mixtures of experts are not read',
  logit_scale: 'scaled logits (Granite) are not read',
  residual_scale: 'scaled residuals (Granite) are not read',
  embedding_scale: 'scaled embeddings (Granite) are not read',
  'attention.scale': 'scaled attention (Granite) is not read',
};

/**
 * @param scalingOf The stretching of positions that the file's tensors hold, for the decoder without it
 * @throws CheckpointError naming the key and the expected value, or the architecture or feature that is not supported
 */
export function ggufDecoder(
  { metadata, tensors }: GgufHeader,
  file: string,
  scalingOf: (config: DecoderConfig) => RopeScaling | undefined,
): GgufDecoder {
  const named = metadata.get('general.architecture');
  const architecture = GGUF_ARCHITECTURES.find((each) => each === named);
  if (architecture === undefined)
    throw new CheckpointError(
      `${file}: architecture "${shown(named)}" is not supported in GGUF files${unreadReason(shown(named), GGUF_ARCHITECTURES)}`,
    );
  const keyOf = (name: string) => `${architecture}.${name}`;
  for (const [name, why] of Object.entries(VARIANTS))
    if (Number(metadata.get(keyOf(name)) ?? 0) !== 0) throw new CheckpointError(`${file}: ${keyOf(name)}: ${why}`);
  const numbers = numbersIn(metadata, keyOf, file);
  const width = numbers.count('width');
  const heads = numbers.count('heads');
  const kvHeads = numbers.count('kvHeads', heads);
  const headDim = numbers.count('keyDim', width / heads);
  for (const name of ['valueDim', 'rotated'] as const) numbers.require(name, headDim);
  if (headDim % 2 !== 0)
    throw new CheckpointError(`${file}: expected an even number of values a head, found ${headDim}`);
  if (heads % kvHeads !== 0)
    throw new CheckpointError(`${file}: ${heads} heads cannot share ${kvHeads} key/value heads evenly`);
  const embedding = tensors.get(ggufName('model.embed_tokens.weight'));
  if (embedding === undefined)
    throw new CheckpointError(`${file}: tensor "${ggufName('model.embed_tokens.weight')}" is missing`);
  const has = (name: string) => tensors.has(ggufName(name));
  const firstLayer = 'model.layers.0.self_attn';
  const layers = numbers.count('layers', undefined, CONFIG_LIMITS.layers);
  // llama.cpp knows SmolLM3's layers without rotation by their number; its files do not name them.
  const unrotatedLayers = architecture === 'smollm3' ? unrotatedByDefault(layers) : [];
  const config: DecoderConfig = {
    vocabSize: embedding.shape[0] ?? 0,
    width,
    layers,
    heads,
    kvHeads,
    headDim,
    feedForward: numbers.count('feedForward'),
    context: numbers.count('context', undefined, CONFIG_LIMITS.context),
    ropeBase: numbers.real('ropeBase', 10_000),
    normEpsilon: numbers.real('normEpsilon'),
    ...(has(`${firstLayer}.q_proj.bias`) && { attentionBias: has(`${firstLayer}.o_proj.bias`) ? 'qkvo' : 'qkv' }),
    ...(architecture === 'qwen3' && { queryKeyNorm: true }),
    ...(unrotatedLayers.length > 0 && { unrotatedLayers }),
    ...(has('lm_head.weight') && { untiedOutput: true }),
  };
  // Like llama.cpp: a factor alone is one of linear stretching, also under its old name.
  const factor = (['ropeFactor', 'oldRopeFactor'] as const).find((name) => metadata.get(keyOf(KEYS[name])));
  const kind = metadata.get(keyOf(KEYS.ropeScaling)) ?? (factor === undefined ? 'none' : 'linear');
  if (kind !== 'none' && kind !== 'linear')
    throw new CheckpointError(
      `${file}: ${keyOf(KEYS.ropeScaling)} "${shown(kind)}" is not supported, expected none or linear`,
    );
  const byTensor = scalingOf(config);
  if (kind === 'linear' && byTensor !== undefined)
    throw new CheckpointError(
      `${file}: stretches positions twice, by ${keyOf(KEYS[factor ?? 'ropeFactor'])} and by the tensor "${ROPE_FACTORS}", which is not supported`,
    );
  const ropeScaling: RopeScaling | undefined =
    kind === 'linear' ? { type: 'linear', factor: numbers.real(factor ?? 'ropeFactor') } : byTensor;
  return { architecture, config: { ...config, ...(ropeScaling && { ropeScaling }) } };
}

/** The functions that read the numbers of a decoder's metadata. */
function numbersIn(metadata: GgufHeader['metadata'], keyOf: (name: string) => string, file: string) {
  type Name = keyof typeof KEYS;
  const read = (name: Name, absent?: number) => metadata.get(keyOf(KEYS[name])) ?? absent;
  const refuse = (name: Name, expected: string, value: GgufMetadataValue | undefined) =>
    new CheckpointError(`${file}: ${keyOf(KEYS[name])}: expected ${expected}, found ${shown(value)}`);
  return {
    count(name: Name, absent?: number, most = 2 ** 31): number {
      const value = read(name, absent);
      if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most) return value;
      throw refuse(name, `a whole number from 1 to ${most}`, value);
    },
    /** A positive number of float32, as the shortest decimal that is the same float32: 1e-6 and not 9.99999997e-7. */
    real(name: Name, absent?: number): number {
      const value = read(name, absent);
      if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return shortest(value);
      throw refuse(name, 'a positive number', value);
    },
    require(name: Name, expected: number): void {
      const value = read(name, expected);
      if (value !== expected) throw refuse(name, `${expected}, the length of a key`, value);
    },
  };
}

/** The shortest decimal that rounds to the same float32; the number itself if it is no float32. */
function shortest(value: number): number {
  for (let digits = 1; digits <= 9; digits++) {
    const rounded = Number(value.toPrecision(digits));
    if (Math.fround(rounded) === value) return rounded;
  }
  return value;
}

/** A value for messages; lists and long texts are not repeated. */
const shown = (value: GgufMetadataValue | undefined) =>
  typeof value === 'object' ? `a list of ${value.length}` : String(value ?? 'nothing').slice(0, 80);
