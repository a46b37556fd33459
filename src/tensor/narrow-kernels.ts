/**
 * What multiplies operands in bfloat16: AMX's tiles, AVX512-BF16's pairs where those are faster than floats (not on
 * Intel), or the kernels of float32 on floats that were rounded. The latter two give the same bits; tiles, which can be
 * emulated, sum in another order.
 */
export type NarrowProducts = 'amx' | 'amx-emulated' | 'avx512-bf16' | 'widened';

/** Whether products are summed in tiles, and not pair by pair. */
export const inTiles = (products: NarrowProducts): boolean => products === 'amx' || products === 'amx-emulated';

/**
 * The part of `KernelsOn` that multiplies operands rounded to bfloat16: both factors of every product are rounded to
 * the nearest number in bfloat16, ties to even, and subnormal ones to 0; sums are in float32. All promises of
 * `KernelsOn` hold here too: row invariance, determinism, one fixed order.
 */
export interface NarrowKernels<F, H> {
  readonly narrowProducts: NarrowProducts;

  /** Number of elements that `packNarrow` writes for a matrix with these sizes. */
  packedNarrowSize(inputs: number, outputs: number): number;
  /** `pack` for `linearNarrow`: rounds a matrix of either kind. The packed form is private to the implementation. */
  packNarrow(packed: H, weight: F | H, inputs: number, outputs: number, transpose: boolean): void;
  /** `linear` of `x` rounded. */
  linearNarrow(out: F, x: F, packed: H, rows: number, inputs: number, outputs: number, accumulate: boolean): void;
  /** `linearWeightGradient` of `x` and `dOut` rounded; `dWeight` keeps all of its bits. */
  linearNarrowWeightGradient(dWeight: F, x: F, dOut: F, rows: number, inputs: number, outputs: number): void;
}
