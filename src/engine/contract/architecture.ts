/** The architecture of a decoder and of its adapters. */

/** How positions are stretched beyond the context that a model was first trained on. */
export type RopeScaling =
  | { readonly type: 'linear'; readonly factor: number }
  | {
      readonly type: 'llama3';
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      /** Context length before stretching. */
      readonly originalContext: number;
    };

/**
 * A decoder in the Llama layout: its sizes, and the features that differ between families. Field names follow the
 * transformer literature, not one vendor's file. A feature that a decoder lacks is absent, so that equal decoders
 * have equal configs.
 */
export interface DecoderConfig {
  readonly vocabSize: number;
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly feedForward: number;
  readonly context: number;
  readonly ropeBase: number;
  readonly normEpsilon: number;
  /** Absent: positions are rotated as they are. */
  readonly ropeScaling?: RopeScaling;
  /** The layers, from 0 and ascending, that do not rotate queries and keys (SmolLM3). At least one; absent: none. */
  readonly unrotatedLayers?: readonly number[];
  /**
   * Attention projections that add a bias: the projections of queries, keys and values, or also the output projection.
   */
  readonly attentionBias?: 'qkv' | 'qkvo';
  /** Queries and keys are normalised (RMSNorm) head by head before the rotation. */
  readonly queryKeyNorm?: true;
  /** True if the output head is a separate matrix, not the embedding. */
  readonly untiedOutput?: true;
}

/** The linear layers of a decoder's layer: four of attention, three of the SwiGLU block. */
export const PROJECTIONS = ['q', 'k', 'v', 'o', 'gate', 'up', 'down'] as const;
export type ProjectionName = (typeof PROJECTIONS)[number];

/**
 * A low-rank adapter (LoRA, Hu et al. 2021): y = x W of each target becomes x W + (alpha / rank) (x A) B with A
 * [inputs, rank] and B [rank, outputs]. Only A and B are trained; W is the base's, and shared by all adapters on it.
 */
export interface AdapterSettings {
  readonly rank: number;
  readonly alpha: number;
  /** At least one, in the order of `PROJECTIONS`. */
  readonly targets: readonly ProjectionName[];
}

/**
 * The format of both operands of every matrix product: `float32`, or rounded to `bfloat16`. Sums, and all numbers that
 * are not multiplied, are in float32 in both.
 */
export const PRECISIONS = ['float32', 'bfloat16'] as const;
export type Precision = (typeof PRECISIONS)[number];

/** Where an engine of this process computes. */
export const DEVICES = ['cpu', 'gpu'] as const;
export type Device = (typeof DEVICES)[number];
