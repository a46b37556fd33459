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

export type TinyDecoderInput = Omit<TinyDecoderSpec, 'type' | 'kvHeads' | 'ropeBase'> &
  Partial<Pick<TinyDecoderSpec, 'kvHeads' | 'ropeBase'>>;

/** A small decoder in the Llama layout with random first weights. `kvHeads` defaults to `heads`, `ropeBase` to 10000. */
export function tinyDecoder(input: TinyDecoderInput): TinyDecoderSpec {
  return { type: 'tiny-decoder', kvHeads: input.heads, ropeBase: 10_000, ...input };
}

/** The model in a local directory in the Hugging Face layout (config.json, safetensors, tokenizer). */
export function checkpoint(path: string): CheckpointSpec {
  return { type: 'checkpoint', path };
}
