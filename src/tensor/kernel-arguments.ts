/**
 * A matrix that is only read: numbers in float32, or in bfloat16, each the upper half of a float32's bits. Widening
 * puts zeros below, so it changes no value, and both give the same bits wherever they hold the same numbers.
 */
export type WeightArray = Float32Array | Uint16Array;

/** The number format of a matrix in memory. */
export type MatrixKind = 'float32' | 'bfloat16';

/** The heads of an attention layer. Each key-value head serves heads / kvHeads neighbouring query heads. */
export interface Heads {
  /** Query heads, a multiple of `kvHeads`. */
  readonly heads: number;
  readonly kvHeads: number;
  /** Floats of one query, key or value: even. */
  readonly headDim: number;
}

/** The settings of one AdamW step. */
export interface AdamWStep {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** t >= 1. */
  readonly step: number;
  readonly gradientScale: number;
}

/** The settings of one step of SGD. */
export interface SgdStep {
  readonly learningRate: number;
  readonly momentum: number;
  readonly nesterov: boolean;
  readonly weightDecay: number;
  readonly gradientScale: number;
}

/** The settings of one step of N-PG-IGT. */
export interface NigtStep {
  readonly learningRate: number;
  readonly momentum: number;
  readonly gradientScale: number;
  /** t >= 1. */
  readonly step: number;
}
