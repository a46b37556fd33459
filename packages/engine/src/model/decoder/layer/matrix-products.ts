/** A layer's matrix products, and an adapter's share in them. */
import type { DecoderConfig } from '../../../contract/architecture.js';
import type { Before } from '../../../tensor/kernel-arguments.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats } from '../../../tensor/memory.js';
import type { Products } from '../../../tensor/products.js';
import { adapterPair, addGradientOfB } from '../weights/adapter-tensors.js';
import type { DecoderTensors, Matrix } from '../weights/decoder-tensors.js';
import type { Gradient } from '../weights/model-weights.js';
import type { PackedAdapter } from '../weights/packed-adapter.js';
import type { LayerMatrixShapes, PackedDecoder } from '../weights/packed-decoder.js';

/**
 * The rows of one adapter: all rows before `end` that belong to no earlier one; without an adapter, rows of the base
 * alone.
 */
export interface AdaptedRows {
  readonly adapter: PackedAdapter | undefined;
  readonly end: number;
}

/** The weights that a pass reads, packed for its direction: from inputs to outputs, or back. */
export interface Stack {
  readonly kernels: Kernels;
  /** Those that `packed` and the adapters are packed for. */
  readonly products: Products;
  readonly config: DecoderConfig;
  /** The angles of each layer's rotation (`ropeTables`). */
  readonly ropes: readonly (Floats | undefined)[]; // [layers]
  readonly tensors: DecoderTensors;
  readonly packed: PackedDecoder;
  /** The adapters in order, which together cover all rows of a pass; none if no row is adapted. */
  readonly adapters: readonly AdaptedRows[];
}

/** One of a layer's matrices M [inputs, outputs], and the number of rows that pass through it. */
interface MatrixUse {
  readonly layer: number;
  readonly matrix: Matrix;
  readonly rows: number;
}

interface ProductInput {
  readonly x: Floats; // [rows, inputs]
  readonly downProjected: Floats; // [rows, n · rank], x A
}

/** A product x M. */
export interface Product extends MatrixUse, ProductInput {
  readonly out: Floats; // [rows, outputs]
  readonly before: Before<Floats> | undefined;
}

/** The gradient of a product; `x` and `downProjected` come from the forward pass. */
interface ProductGradient extends MatrixUse, ProductInput {
  readonly dOut: Floats; // [rows, outputs]
  /** The buffer for the gradient of `x`; without one that gradient is not computed. */
  readonly dx: Floats | undefined; // [rows, inputs]
}

export interface AdapterScratch {
  readonly dDownProjected: Floats; // [rows, n · rank]
  readonly dBlocks: Floats; // [n · rank, outputs]
}

const shapeOf = ({ shapes }: PackedDecoder, layer: number, matrix: Matrix) =>
  (shapes[layer] as LayerMatrixShapes)[matrix];

/**
 * Computes out = before + x M. Where M is adapted, the adapter's share is computed by way of `downProjected` and added
 * with one addition: while B is 0 it changes no bit (but for the sign of a zero).
 */
export function multiply(stack: Stack, product: Product): void {
  const { products, packed, adapters } = stack;
  const { layer, matrix, rows, x, downProjected, out, before } = product;
  const [from, to] = shapeOf(packed, layer, matrix);
  const matrices = packed.layers[layer] as PackedDecoder['layers'][number];
  const [only] = adapters;
  if (only !== undefined && only.end >= rows) {
    const pair = only.adapter?.layers[layer]?.[matrix];
    downProject(stack, product);
    const share = pair && { x: downProjected, packed: pair.up, width: pair.adapted.width };
    products.linearOnto({ out, before, x, packed: matrices[matrix], share, rows, inputs: from, outputs: to });
    return;
  }
  products.linearOnto({ out, before, x, packed: matrices[matrix], rows, inputs: from, outputs: to });
  let first = 0;
  for (const { adapter, end } of adapters) {
    const count = Math.min(end, rows) - first;
    const pair = adapter?.layers[layer]?.[matrix];
    if (pair !== undefined && count > 0) {
      const { width } = pair.adapted;
      const down = { x: x.subarray(first * from), packed: pair.down, inputs: from, outputs: width };
      const up = { x: downProjected, packed: pair.up, inputs: width, outputs: to };
      products.linear({ out: downProjected, ...down, rows: count, accumulate: false });
      products.linear({ out: out.subarray(first * to), ...up, rows: count, accumulate: true });
    }
    first = end;
  }
}

/** Computes only the first half of an adapter's share: `downProjected`. */
export function downProject(
  { products, packed, adapters }: Stack,
  { layer, matrix, rows, x, downProjected }: MatrixUse & ProductInput,
): void {
  const pair = adapters[0]?.adapter?.layers[layer]?.[matrix]; // in training one adapter serves all rows, if any
  if (pair === undefined) return;
  const sizes = { rows, inputs: shapeOf(packed, layer, matrix)[0], outputs: pair.adapted.width };
  products.linear({ out: downProjected, x, packed: pair.down, ...sizes, accumulate: false });
}

/**
 * The backward pass of `multiply`: computes dx, and adds to the gradient of the matrix or to the gradients of its
 * adapter (A: xᵀ dDownProjected; B: downProjectedᵀ dOut).
 */
export function multiplyBackward(
  stack: Stack,
  gradient: Gradient,
  { layer, matrix, rows, x, downProjected, dOut, dx }: ProductGradient,
  { dDownProjected, dBlocks }: AdapterScratch,
): void {
  const { products, packed, adapters } = stack;
  const [outputs, inputs] = shapeOf(packed, layer, matrix);
  if (dx === undefined) downProject(stack, { layer, matrix, rows, x: dOut, downProjected: dDownProjected });
  else multiply(stack, { layer, matrix, rows, x: dOut, downProjected: dDownProjected, out: dx, before: undefined });
  const matrixGradients = gradient.decoder?.layers[layer];
  if (matrixGradients !== undefined)
    products.linearWeightGradient({ dWeight: matrixGradients[matrix], x, dOut, rows, inputs, outputs });
  const adapter = adapters[0]?.adapter; // in training one adapter serves all rows, if any
  const adapted = adapter?.layers[layer]?.[matrix]?.adapted;
  if (gradient.adapter === undefined || adapter === undefined || adapted === undefined) return;
  const { A, B } = adapterPair(gradient.adapter, layer, matrix);
  const { width } = adapted;
  products.linearWeightGradient({ dWeight: A, x, dOut: dDownProjected, rows, inputs, outputs: width });
  const blocks = dBlocks.subarray(0, width * outputs);
  addGradientOfB(stack, B, adapted, adapter.settings, { rows, downProjected, dOut }, blocks);
}
