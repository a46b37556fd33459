/** The architecture of a decoder and of its adapters. */
import { TORCH_DEVICES, type TorchDevice } from '../host.js';

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

/** Layers whose queries see only the last positions, and whose rotation has a base of its own (Gemma 3). */
export interface SlidingWindow {
  /** The positions that a query sees at most, its own included. */
  readonly positions: number;
  /** From 0 and ascending, at least one. */
  readonly layers: readonly number[];
  /** The base of these layers' rotation, which is not stretched (`ropeScaling`). */
  readonly ropeBase: number;
}

/** Layers that mix a token with the few before it by a short causal convolution in attention's place (LFM2). */
export interface ShortConvolution {
  /** The tokens that a convolution reads, the own one included. */
  readonly taps: number;
  /** From 0 and ascending, at least one. */
  readonly layers: readonly number[];
}

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
  /** The gate of feed-forward layers: GELU, approximated by tanh. Absent: SiLU. */
  readonly gate?: 'gelu';
  /** The weights of norms are their gains minus 1. */
  readonly offsetNorms?: true;
  /** The results of attention and of the feed-forward layer are normalised (RMSNorm) before they are added. */
  readonly resultNorms?: true;
  /** Embedded tokens are multiplied by sqrt(width). The output head reads the embedding as it is. */
  readonly scaledEmbedding?: true;
  /** Scores of attention are divided by the square root of this number. Absent: of `headDim`. */
  readonly scoreDivisor?: number;
  readonly slidingWindow?: SlidingWindow;
  readonly convolution?: ShortConvolution;
  /** True if the output head is a separate matrix, not the embedding. */
  readonly untiedOutput?: true;
}

/**
 * The linear layers of a decoder's layer: four of attention, three of the gated feed-forward layer. In a layer that
 * convolves one joined projection is in the place of `q`, `k` and `v`, and an adapter of any of them adapts it.
 */
export const PROJECTIONS = ['q', 'k', 'v', 'o', 'gate', 'up', 'down'] as const;
/** A weight matrix of a layer: of attention (`q`, `k`, `v`, `o`), or of the feed-forward part. */
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
 * The format of both operands of every matrix product: `float32`, or rounded to `bfloat16`. `int8` is for a base in
 * blocks: from inputs to outputs its products multiply whole numbers of 8 bits, and gradients go back in bfloat16; all
 * others are in float32. Sums, and all numbers that are not multiplied, are in float32 in all of them.
 */
export const PRECISIONS = ['float32', 'bfloat16', 'int8'] as const;
/** The numbers that matrix products multiply. Weights and sums stay in float32. */
export type Precision = (typeof PRECISIONS)[number];

/** Where the engine in this package's own kernels computes: on the processor, or on a GPU through WebGPU. */
export const DEVICES = ['cpu', 'gpu'] as const;
/** `cpu`: the processor. `gpu`: a GPU through WebGPU. */
export type Device = (typeof DEVICES)[number];

/** Where the embedded engine computes: with its own kernels, or on PyTorch. */
export const ENGINE_DEVICES = [...DEVICES, ...TORCH_DEVICES] as const;
export type EngineDevice = (typeof ENGINE_DEVICES)[number];

export const isTorchProcessor = (device: EngineDevice): boolean => device.startsWith('torch-cpu');

/** Whether a word names a device of the engine on PyTorch. */
export const isTorchDevice = (word: string | undefined): word is TorchDevice =>
  TORCH_DEVICES.some((device) => device === word);
