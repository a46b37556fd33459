/**
 * A matrix that is only read: numbers in float32, or in bfloat16, each the upper half of a float32's bits. Widening
 * puts zeros below, so it changes no value, and both give the same bits wherever they hold the same numbers.
 */
export type WeightArray = Float32Array | Uint16Array;

/** The types of a set of kernels: the memory that it works on, and the sums that it returns to the host. */
export interface MemoryKinds {
  /** Numbers in float32. */
  readonly floats: unknown;
  /** Numbers in int32. */
  readonly integers: unknown;
  /** Numbers in bfloat16. */
  readonly bfloat16: unknown;
  /** A sum: a number, or a promise of one if the host has to wait for it. */
  readonly sum: unknown;
}

/** The types of kernels on the processor: memory of this process. */
export interface HostMemoryKinds {
  readonly floats: Float32Array;
  readonly integers: Int32Array;
  readonly bfloat16: Uint16Array;
  readonly sum: number;
}

/** The number format of a matrix in memory. */
export type MatrixKind = 'float32' | 'bfloat16';

/** The heads of an attention layer. Each key-value head serves heads / kvHeads neighbouring query heads. */
export interface Heads {
  /** Query heads, a multiple of `kvHeads`. */
  readonly heads: number;
  readonly kvHeads: number;
  /** Floats of one query, key or value: even. */
  readonly headDim: number;
  /** The positions that a query sees at most, its own included. Absent or 0: all positions up to its own. */
  readonly window?: number | undefined;
}

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

export interface SgdStep {
  readonly learningRate: number;
  readonly momentum: number;
  readonly nesterov: boolean;
  readonly weightDecay: number;
  readonly gradientScale: number;
}

export interface NigtStep {
  readonly learningRate: number;
  readonly momentum: number;
  readonly gradientScale: number;
  /** t >= 1. */
  readonly step: number;
}

/** The start of a sum of products: a row [outputs] that all rows share, or [rows, outputs], which may be `out`. */
export type Before<F> = { readonly bias: F } | { readonly residual: F };

/** A second product that is added to a first one: x [rows, width] W, for example the share of an adapter. */
export interface Share<F, W> {
  readonly x: F;
  readonly packed: W;
  readonly width: number;
}
