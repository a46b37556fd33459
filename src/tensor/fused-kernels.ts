/**
 * Operations that a device carries out at once and that are several calls elsewhere, where a call costs nothing. A
 * dispatch costs the host a few microseconds and the device a pause, and a decoder has hundreds of them a tick.
 */
import type { Heads } from './kernel-arguments.js';
import type { MemoryKernels } from './memory-kernels.js';

/** What a product is added to: a row [outputs] that is the same for all, or [rows, outputs], which may be `out`. */
export type Before<F> = { readonly bias: F } | { readonly residual: F };

/** A second product that is added to a first one: x [rows, width] W, as an adapter's. */
export interface Share<F, W> {
  readonly x: F;
  readonly packed: W;
  readonly width: number;
}

/**
 * Each gives the bits of the calls that it stands for. Besides, kernels that have these take a gain's gradient of no
 * numbers in `rmsNormBackward` and `headNormBackward`, and do not compute it.
 */
export interface FusedKernels<F, I, H> {
  /**
   * `linear` or, when `narrow`, `linearNarrow`: out [rows, outputs] = before + x [rows, inputs] W + share, each of the
   * products a sum of its own that is added once (`linearOntoByCalls`).
   */
  linearOnto(
    narrow: boolean,
    out: F,
    before: Before<F> | undefined,
    x: F,
    packed: F | H,
    share: Share<F, F | H> | undefined,
    rows: number,
    inputs: number,
    outputs: number,
  ): void;
  /**
   * A part of `linearWeightGradient`, or when `narrow` of `linearNarrowWeightGradient`: dWeight [inputs, outputs] is
   * added to, + scale · xᵀ dOut, where rows of `x` are `xStride` and rows of `dOut` `dOutStride` numbers apart.
   */
  partOfWeightGradient(
    narrow: boolean,
    dWeight: F,
    scale: number,
    x: F,
    xStride: number,
    dOut: F,
    dOutStride: number,
    rows: number,
    inputs: number,
    outputs: number,
  ): void;
  /** `rope` and `attentionCached`. The keys in `qkv` are left as they are, or turned. */
  ropeAttentionCached(
    out: F,
    keys: F,
    values: F,
    qkv: F,
    table: F,
    slots: I, // [rows]
    positions: I, // [rows]
    rows: number,
    capacity: number,
    heads: Heads,
  ): void;
}

/** What `linearOnto` stands for: `linear` in one precision, and what fills its memory before. */
interface Calls<F, H> extends Pick<MemoryKernels<F, never, H>, 'copy' | 'repeat'> {
  linear(out: F, x: F, packed: F | H, rows: number, inputs: number, outputs: number, accumulate: boolean): void;
}

/** `linearOnto` by the calls that it stands for. */
export function linearOntoByCalls<F extends object, H>(
  { copy, repeat, linear }: Calls<F, H>,
  out: F,
  before: Before<F> | undefined,
  x: F,
  packed: F | H,
  share: Share<F, F | H> | undefined,
  rows: number,
  inputs: number,
  outputs: number,
): void {
  if (before !== undefined) {
    if ('bias' in before) repeat(out, before.bias, rows);
    else if (before.residual !== out) copy(out, before.residual);
  }
  linear(out, x, packed, rows, inputs, outputs, before !== undefined);
  if (share !== undefined) linear(out, share.x, share.packed, rows, share.width, outputs, true);
}
