/** How a recipe names a policy's model: plain data, so that it can be written to recipe.json and overridden leaf by leaf. */

import type { HuggingFaceSpec, TokenizerSpec } from './tokenizers/spec.js';

/** A decoder trained from scratch: random first weights, so a recipe with one wants a warm start. */
export interface TinyDecoderSpec {
  readonly type: 'tiny-decoder';
  /** Residual stream width d. */
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  /** Key/value heads; each serves heads / kvHeads query heads. */
  readonly kvHeads: number;
  /** Hidden width of the SwiGLU block. */
  readonly feedForward: number;
  /** Longest prompt + response in tokens. */
  readonly context: number;
  readonly ropeBase: number;
  readonly tokenizer: Exclude<TokenizerSpec, HuggingFaceSpec>;
}

/** A model on disk, as a directory in the Hugging Face layout. */
export interface CheckpointSpec {
  readonly type: 'checkpoint';
  readonly path: string;
}

export type ModelSpec = TinyDecoderSpec | CheckpointSpec;

/** A tiny decoder as it is written: `kvHeads` defaults to `heads`, `ropeBase` to 10000. */
export type TinyDecoderInput = Omit<TinyDecoderSpec, 'kvHeads' | 'ropeBase'> & {
  readonly kvHeads?: number | undefined;
  readonly ropeBase?: number | undefined;
};

export type ModelInput = TinyDecoderInput | CheckpointSpec;

/** A small decoder in the Llama layout with random first weights. */
export function tinyDecoder(input: Omit<TinyDecoderInput, 'type'>): TinyDecoderInput {
  return { type: 'tiny-decoder', ...input };
}

/** The model in a local directory in the Hugging Face layout (config.json, safetensors, tokenizer). */
export function checkpoint(path: string): CheckpointSpec {
  return { type: 'checkpoint', path };
}

/** Fills in what was left out. */
export function completeModel(input: ModelInput): ModelSpec {
  if (input.type === 'checkpoint') return input;
  return { ...input, kvHeads: input.kvHeads ?? input.heads, ropeBase: input.ropeBase ?? 10_000 };
}
