/** The work of every engine: the model shapes, the training batch and the decoding requests. */

import type { DecoderConfig } from '@drmas/engine/contract';
import { RandomStream } from '@drmas/engine/math';
import { parameterCount } from '@drmas/engine/model';

export interface Shape {
  readonly name: string;
  readonly vocabSize: number;
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly feedForward: number;
  /** The tokens of a training sequence. */
  readonly sequence: number;
  /** The tokens of a training step: forward, backward, clipping and AdamW. */
  readonly stepTokens: number;
  /** The requests that are decoded without peers, few enough that contributors need not wait. */
  readonly requests: number;
  /**
   * The rank of a LoRA adapter on all projections of a random bfloat16 checkpoint; without it all weights are trained.
   */
  readonly adapterRank?: number;
  /** True computes the layers' inner values again in the backward pass, which costs time and saves memory. */
  readonly recompute?: true;
}

export const shapes: readonly Shape[] = [
  {
    name: 'tiny',
    vocabSize: 64,
    width: 96,
    layers: 3,
    heads: 4,
    kvHeads: 4,
    feedForward: 256,
    sequence: 64,
    stepTokens: 4096,
    requests: 256,
  },
  {
    name: 'small',
    vocabSize: 512,
    width: 256,
    layers: 4,
    heads: 8,
    kvHeads: 4,
    feedForward: 768,
    sequence: 256,
    stepTokens: 4096,
    requests: 64,
  },
  {
    name: 'base',
    vocabSize: 8192,
    width: 512,
    layers: 8,
    heads: 8,
    kvHeads: 2,
    feedForward: 1408,
    sequence: 512,
    stepTokens: 4096,
    requests: 64,
  },
];

/** The shapes that are measured only by name: alone, one engine at a time, with their peak memory. */
export const largeShapes: readonly Shape[] = [
  // The sizes of Qwen2.5-0.5B, without its biases.
  {
    name: 'qwen05',
    vocabSize: 151_936,
    width: 896,
    layers: 24,
    heads: 14,
    kvHeads: 2,
    feedForward: 4864,
    sequence: 512,
    stepTokens: 512,
    requests: 4,
    adapterRank: 16,
    recompute: true,
  },
  // The sizes of Qwen2.5-1.5B, without its biases.
  {
    name: 'qwen15',
    vocabSize: 151_936,
    width: 1536,
    layers: 28,
    heads: 12,
    kvHeads: 2,
    feedForward: 8960,
    sequence: 512,
    stepTokens: 512,
    requests: 4,
    adapterRank: 16,
    recompute: true,
  },
];

/** The requests that are decoded on a GPU: enough for the usual tick of a run. */
export const GPU_REQUESTS = 32;

/** The memory limit in bytes of a process that trains and samples a large shape. */
export const LARGE_MEMORY = 8e9;

export function decoderConfig(shape: Shape, context: number): DecoderConfig {
  const { vocabSize, width, layers, heads, kvHeads, feedForward } = shape;
  const sizes = { vocabSize, width, layers, heads, kvHeads, feedForward };
  return { ...sizes, headDim: width / heads, context, ropeBase: 10_000, normEpsilon: 1e-6 };
}

/**
 * The name of a shape's training in tables: the shape's name, and the differences from training all weights at once.
 */
export function trainingName({ name, adapterRank, recompute }: Shape): string {
  const adapter = adapterRank === undefined ? [] : [`LoRA rank ${adapterRank}`];
  return [name, ...adapter, ...(recompute ? ['recomputing'] : [])].join(', ');
}

/**
 * The useful arithmetic of a trained token: two operations a parameter forward, and backward four, or two for a frozen
 * parameter; attention and recomputation are not counted.
 * @param trained The number of trained parameters: all, or an adapter's
 */
export function trainingFlops(shape: Shape, trained: number): number {
  const frozen = shape.adapterRank === undefined ? 0 : parameterCount(decoderConfig(shape, shape.sequence));
  return 6 * trained + 4 * frozen;
}

export interface DecodeRequest {
  readonly prompt: readonly number[]; // [64..128]
  /** The number of tokens to sample. */
  readonly length: number;
}

const PROMPT = { least: 64, most: 128 };
const RESPONSE = { mean: 48, most: 192 };

/** A context that every request fits into. */
export const DECODE_CONTEXT = PROMPT.most + RESPONSE.most;

/** Random requests: prompts of 64 to 128 tokens; response lengths geometric with mean 48, at most 192. */
export function decodeRequests(shape: Shape, count: number): DecodeRequest[] {
  const random = new RandomStream('bench decode', shape.name);
  return Array.from({ length: count }, () => {
    const prompt = Array.from({ length: random.integer(PROMPT.least, PROMPT.most) }, () =>
      random.integer(3, shape.vocabSize - 1),
    );
    return { prompt, length: responseLength(random) };
  });
}

/** Geometric with mean 48, at most 192. */
export function responseLength(random: RandomStream): number {
  const drawn = Math.ceil(Math.log(1 - random.uniform()) / Math.log(1 - 1 / RESPONSE.mean));
  return Math.min(RESPONSE.most, Math.max(1, drawn));
}

/** The tokens that the requests ask for. */
export const usefulTokens = (requests: readonly DecodeRequest[]): number =>
  requests.reduce((sum, { length }) => sum + length, 0);
