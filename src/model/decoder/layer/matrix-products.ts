/** A layer's matrix products, with the share of an adapter where there is one. */
import type { DecoderConfig } from '../../../contract/architecture.js';
import type { Kernels } from '../../../tensor/kernels.js';
import { type AdapterTensors, adapterPair, gatherBlocks } from '../weights/adapter-tensors.js';
import type { DecoderTensors, Matrix } from '../weights/decoder-tensors.js';
import type { PackedAdapter } from '../weights/packed-adapter.js';
import type { PackedDecoder } from '../weights/packed-decoder.js';

/** An adapter and the rows that are its, those before `end` that are no earlier one's; or rows that nothing adapts. */
export interface AdaptedRows {
  readonly adapter: PackedAdapter | undefined;
  readonly end: number;
}

/** What a pass reads. The packed forms are those of its direction: from inputs to outputs, or back. */
export interface Stack {
  readonly kernels: Kernels;
  readonly config: DecoderConfig;
  readonly rope: Float32Array;
  readonly tensors: DecoderTensors;
  readonly packed: PackedDecoder;
  /** One after another they cover all rows of a pass; none where nothing is adapted. */
  readonly adapters: readonly AdaptedRows[];
}

/** A gradient: of all of a decoder's tensors, or of an adapter's alone. */
export interface Gradient {
  readonly flat: Float32Array;
  readonly decoder?: DecoderTensors<Float32Array>;
  readonly adapter?: AdapterTensors;
}

/**
 * out [rows, to] = x [rows, from] M, or added to it. Where M is adapted, the adapter's share is computed by way of
 * `narrowed` [rows, n · rank] and added with one addition: while B is 0 it changes no bit (but for the sign of a zero).
 */
export function multiply(
  { kernels, packed, adapters }: Stack,
  layer: number,
  matrix: Matrix,
  out: Float32Array,
  x: Float32Array,
  narrowed: Float32Array,
  rows: number,
  accumulate: boolean,
): void {
  const [from, to] = packed.shapes[matrix];
  const matrices = packed.layers[layer] as PackedDecoder['layers'][number];
  kernels.linear(out, x, matrices[matrix], rows, from, to, accumulate);
  let first = 0;
  for (const { adapter, end } of adapters) {
    const count = Math.min(end, rows) - first;
    const pair = adapter?.layers[layer]?.[matrix];
    if (pair !== undefined && count > 0) {
      const { width } = pair.adapted;
      kernels.linear(narrowed, x.subarray(first * from), pair.narrow, count, from, width, false);
      kernels.linear(out.subarray(first * to), narrowed, pair.widen, count, width, to, true);
    }
    first = end;
  }
}

/** Only the adapter's half of `multiply`: narrowed [rows, n · rank] = x times the first of its two matrices. */
export function narrow(
  { kernels, packed, adapters }: Stack,
  layer: number,
  matrix: Matrix,
  x: Float32Array,
  narrowed: Float32Array,
  rows: number,
): void {
  const pair = adapters[0]?.adapter?.layers[layer]?.[matrix]; // training has one for all rows, if any
  if (pair !== undefined)
    kernels.linear(narrowed, x, pair.narrow, rows, packed.shapes[matrix][0], pair.adapted.width, false);
}

/**
 * The backward pass of `multiply`: dx [rows, inputs] from dOut [rows, outputs], and the gradient of the matrix, or of its
 * adapter (A: xᵀ dNarrowed; B: narrowedᵀ dOut), which is added to. `x` and `narrowed` are those of the forward pass,
 * dNarrowed [rows, n · rank] and dBlocks [n · rank, outputs] working memory. Where dx is undefined nobody wants it.
 */
export function multiplyBackward(
  stack: Stack,
  gradient: Gradient,
  layer: number,
  matrix: Matrix,
  dx: Float32Array | undefined,
  dOut: Float32Array,
  { x, narrowed }: { readonly x: Float32Array; readonly narrowed: Float32Array },
  { dNarrowed, dBlocks }: { readonly dNarrowed: Float32Array; readonly dBlocks: Float32Array },
  rows: number,
): void {
  const { kernels, packed, adapters } = stack;
  const [outputs, inputs] = packed.shapes[matrix];
  if (dx === undefined) narrow(stack, layer, matrix, dOut, dNarrowed, rows);
  else multiply(stack, layer, matrix, dx, dOut, dNarrowed, rows, false);
  const own = gradient.decoder?.layers[layer];
  if (own !== undefined) kernels.linearWeightGradient(own[matrix], x, dOut, rows, inputs, outputs);
  const adapter = adapters[0]?.adapter; // training has one for all rows, if any
  const adapted = adapter?.layers[layer]?.[matrix]?.adapted;
  if (gradient.adapter === undefined || adapter === undefined || adapted === undefined) return;
  const { A, B } = adapterPair(gradient.adapter, layer, matrix);
  const { width } = adapted;
  kernels.linearWeightGradient(A, x, dNarrowed, rows, inputs, width);
  const blocks = dBlocks.subarray(0, width * outputs).fill(0);
  kernels.linearWeightGradient(blocks, narrowed, dOut, rows, width, outputs);
  gatherBlocks(B, adapted, adapter.settings, blocks);
}
