import type { WeightArray } from './kernel-arguments.js';

/**
 * The part of `Kernels` that multiplies operands rounded to bfloat16: both factors of every product are rounded to the
 * nearest number in bfloat16, ties to even, and subnormal ones to 0; sums are in float32. All promises of `Kernels`
 * hold here too: row invariance, determinism, one fixed order.
 */
export interface NarrowKernels {
  /**
   * What multiplies operands in bfloat16, for people: 'avx512-bf16' where the processor does, or 'widened': floats that
   * were rounded.
   */
  readonly narrowProducts: string;

  /** Number of elements that `packNarrow` writes for a matrix with these sizes. */
  packedNarrowSize(inputs: number, outputs: number): number;
  /** `pack` for `linearNarrow`: rounds a matrix of either kind. The packed form is private to the implementation. */
  packNarrow(packed: Uint16Array, weight: WeightArray, inputs: number, outputs: number, transpose: boolean): void;
  /** `linear` of `x` rounded. */
  linearNarrow(
    out: Float32Array,
    x: Float32Array,
    packed: Uint16Array,
    rows: number,
    inputs: number,
    outputs: number,
    accumulate: boolean,
  ): void;
  /** `linearWeightGradient` of `x` and `dOut` rounded; `dWeight` keeps all of its bits. */
  linearNarrowWeightGradient(
    dWeight: Float32Array,
    x: Float32Array,
    dOut: Float32Array,
    rows: number,
    inputs: number,
    outputs: number,
  ): void;
}
