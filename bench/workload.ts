/** The work that every engine is given: the model shapes, the training batch and the decoding requests of the targets. */
import type { DecoderConfig } from '../src/core/backend.js';
import { RandomStream } from '../src/core/random.js';

export interface Shape {
  readonly name: string;
  readonly vocabSize: number;
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly feedForward: number;
  /** Tokens of a training sequence. */
  readonly sequence: number;
}

export const shapes: readonly Shape[] = [
  { name: 'tiny', vocabSize: 64, width: 96, layers: 3, heads: 4, kvHeads: 4, feedForward: 256, sequence: 64 },
  { name: 'small', vocabSize: 512, width: 256, layers: 4, heads: 8, kvHeads: 4, feedForward: 768, sequence: 256 },
  { name: 'base', vocabSize: 8192, width: 512, layers: 8, heads: 8, kvHeads: 2, feedForward: 1408, sequence: 512 },
];

/** Tokens of a training step: forward, backward, clipping and AdamW. */
export const STEP_TOKENS = 4096;

export function decoderConfig(shape: Shape, context: number): DecoderConfig {
  const { name: _, sequence: __, ...sizes } = shape;
  return { ...sizes, headDim: shape.width / shape.heads, context, ropeBase: 10_000, normEpsilon: 1e-6 };
}

/** Useful arithmetic of a trained token: two operations a parameter forward, four backward; attention is not counted. */
export const trainingFlops = (parameters: number): number => 6 * parameters;

export interface DecodeRequest {
  readonly prompt: readonly number[]; // [64..128]
  /** Tokens to be sampled, whatever they are. */
  readonly length: number;
}

const PROMPT = { least: 64, most: 128 };
const RESPONSE = { mean: 48, most: 192 };

/** Context that every request fits. */
export const DECODE_CONTEXT = PROMPT.most + RESPONSE.most;

/** Prompts of 64 to 128 random tokens; response lengths geometric with mean 48, at most 192. */
export function decodeRequests(shape: Shape, count: number): DecodeRequest[] {
  const random = new RandomStream('bench decode', shape.name);
  return Array.from({ length: count }, () => {
    const prompt = Array.from({ length: random.integer(PROMPT.least, PROMPT.most) }, () =>
      random.integer(3, shape.vocabSize - 1),
    );
    const drawn = Math.ceil(Math.log(1 - random.uniform()) / Math.log(1 - 1 / RESPONSE.mean));
    return { prompt, length: Math.min(RESPONSE.most, Math.max(1, drawn)) };
  });
}

/** Tokens that somebody asked for. */
export const usefulTokens = (requests: readonly DecodeRequest[]): number =>
  requests.reduce((sum, { length }) => sum + length, 0);
