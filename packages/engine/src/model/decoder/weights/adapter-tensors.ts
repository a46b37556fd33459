/**
 * Low-rank adapters (LoRA, Hu et al. 2021, https://arxiv.org/abs/2106.09685): y = x W + (alpha / rank) (x A) B, where W
 * is not trained. Projections that are side by side in one of the engine's matrices are adapted together: their A's
 * side by side as one [inputs, n · rank], their B's as the blocks of a block-diagonal [n · rank, outputs]. So a matrix
 * needs two products for any number of adapted projections.
 */

import type { AdapterSettings, DecoderConfig } from '../../../contract/architecture.js';
import { ArgumentError } from '../../../errors.js';
import { RandomStream } from '../../../math.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats } from '../../../tensor/memory.js';
import type { Products } from '../../../tensor/products.js';
import {
  type DecoderTensors,
  type LayerProjection,
  layersOf,
  MATRICES,
  type Matrix,
  type MatrixShape,
  matrixShapes,
} from './decoder-tensors.js';

interface AdaptedPart {
  readonly projection: LayerProjection;
  readonly column: number;
  readonly outputs: number;
}

export interface AdaptedMatrix {
  readonly matrix: Matrix;
  readonly inputs: number;
  readonly outputs: number;
  /** The width of the down-projection: n · rank for n adapted projections. */
  readonly width: number;
  readonly parts: readonly AdaptedPart[]; // [n]
}

/** The matrices of a layer that an adapter changes, in the order of its parameters. */
export function adaptedMatrices(
  config: DecoderConfig,
  layer: number,
  { rank, targets }: AdapterSettings,
): AdaptedMatrix[] {
  const shapes = matrixShapes(config, layer);
  return MATRICES.flatMap((matrix) => {
    const { inputs, outputs } = shapes[matrix];
    const parts = adaptedParts(shapes[matrix], targets);
    return parts.length === 0 ? [] : { matrix, inputs, outputs, width: parts.length * rank, parts };
  });
}

function adaptedParts({ parts }: MatrixShape, targets: AdapterSettings['targets']): AdaptedPart[] {
  let column = 0;
  return parts.flatMap(({ projection, outputs }) => {
    const part = { projection, column, outputs };
    column += outputs;
    return adapts(targets, projection) ? part : [];
  });
}

/** Whether an adapter with these targets adapts a projection. The joined one stands for queries, keys and values. */
export const adapts = (targets: AdapterSettings['targets'], projection: LayerProjection): boolean =>
  projection === 'in' ? targets.some((target) => 'qkv'.includes(target)) : targets.includes(projection);

export interface AdapterPair<F extends Floats = Floats> {
  readonly A: F; // [inputs, n · rank], the projections' A's side by side
  readonly B: F; // the projections' B's [rank, outputs of the projection], one after another
}

/** An adapter's tensors, each a view into one flat buffer. */
export interface AdapterTensors<F extends Floats = Floats> {
  readonly flat: F;
  readonly layers: readonly Readonly<Partial<Record<Matrix, AdapterPair<F>>>>[];
}

export function adapterPair<F extends Floats>(
  { layers }: AdapterTensors<F>,
  layer: number,
  matrix: Matrix,
): AdapterPair<F> {
  return layers[layer]?.[matrix] as AdapterPair<F>;
}

const sizesOf = ({ inputs, width, parts }: AdaptedMatrix, { rank }: AdapterSettings) => ({
  A: inputs * width,
  B: parts.reduce((sum, { outputs }) => sum + rank * outputs, 0),
});

/** The number of floats in all tensors together. */
export function adapterParameterCount(config: DecoderConfig, settings: AdapterSettings): number {
  const matrices = layersOf(config).flatMap((layer) => adaptedMatrices(config, layer, settings));
  return matrices.map((adapted) => sizesOf(adapted, settings)).reduce((sum, { A, B }) => sum + A + B, 0);
}

/**
 * An adapter's tensors as views into `flat`, which must hold exactly `adapterParameterCount(config, settings)` floats.
 * @throws ArgumentError when it does not, or the settings are out of range
 */
export function adapterTensors<F extends Floats>(
  config: DecoderConfig,
  settings: AdapterSettings,
  flat: F,
): AdapterTensors<F> {
  checkAdapter(settings);
  const count = adapterParameterCount(config, settings);
  if (flat.length !== count) throw new ArgumentError(`expected ${count} parameters, got ${flat.length}`);
  let offset = 0;
  const next = (size: number) => {
    offset += size;
    return flat.subarray(offset - size, offset) as F;
  };
  const pairOf = (adapted: AdaptedMatrix): AdapterPair<F> => {
    const { A, B } = sizesOf(adapted, settings);
    return { A: next(A), B: next(B) };
  };
  const layers = layersOf(config).map((layer) =>
    Object.fromEntries(adaptedMatrices(config, layer, settings).map((adapted) => [adapted.matrix, pairOf(adapted)])),
  );
  return { flat, layers };
}

function checkAdapter({ rank, alpha, targets }: AdapterSettings): void {
  if (!Number.isInteger(rank) || rank < 1)
    throw new ArgumentError(`an adapter's rank must be a whole number of at least 1, got ${rank}`);
  if (!(alpha > 0)) throw new ArgumentError(`an adapter's alpha must be positive, got ${alpha}`);
  if (targets.length === 0) throw new ArgumentError('an adapter needs at least one target');
}

/**
 * Random first weights, a pure function of the seed, as PEFT draws them: A uniform in ±1/sqrt(inputs) (Kaiming's rule
 * with a = sqrt(5)), B 0, so that the adapter changes nothing yet.
 */
export function initialiseAdapter(
  config: DecoderConfig,
  settings: AdapterSettings,
  { layers }: AdapterTensors<Float32Array>,
  seed: number,
): void {
  const random = new RandomStream('initialise adapter', seed);
  for (const [l, layer] of layers.entries()) {
    for (const { matrix, inputs } of adaptedMatrices(config, l, settings)) {
      const { A, B } = layer[matrix] as AdapterPair<Float32Array>;
      for (let i = 0; i < A.length; i++) A[i] = (2 * random.uniform() - 1) * inputs ** -0.5;
      B.fill(0);
    }
  }
}

/**
 * Writes (alpha / rank) times the B's as diagonal blocks into `blocks` [n · rank, outputs], and leaves its other
 * entries.
 */
export function spreadBlocks(
  kernels: Kernels,
  blocks: Floats,
  { outputs: stride, parts }: AdaptedMatrix,
  { rank, alpha }: AdapterSettings,
  B: Floats,
): void {
  let from = 0;
  parts.forEach(({ column, outputs }, n) => {
    const block = blocks.subarray(n * rank * stride + column);
    kernels.copyBlock({
      to: block,
      toStride: stride,
      from: B.subarray(from),
      fromStride: outputs,
      rows: rank,
      columns: outputs,
      scale: alpha / rank,
      accumulate: false,
    });
    from += rank * outputs;
  });
}

/** A product with B: its left operand, and the gradient of its result. */
interface ThroughB {
  readonly rows: number;
  readonly downProjected: Floats; // [rows, n · rank]
  readonly dOut: Floats; // [rows, outputs]
}

/**
 * Adds the gradient of the B's to `dB`: (alpha / rank) times the diagonal blocks of downProjectedᵀ dOut, `spreadBlocks`
 * for gradients, which flow the other way.
 * @param blocks Working memory, [n · rank, outputs]
 */
export function addGradientOfB(
  { kernels, products }: { readonly kernels: Kernels; readonly products: Products },
  dB: Floats,
  { width, outputs: stride, parts }: AdaptedMatrix,
  { rank, alpha }: AdapterSettings,
  { rows, downProjected, dOut }: ThroughB,
  blocks: Floats,
): void {
  const { partOfWeightGradient } = products;
  if (partOfWeightGradient === undefined) {
    kernels.fill({ x: blocks, value: 0 });
    products.linearWeightGradient({ dWeight: blocks, x: downProjected, dOut, rows, inputs: width, outputs: stride });
  }
  let to = 0;
  parts.forEach(({ column, outputs }, n) => {
    const part = dB.subarray(to);
    if (partOfWeightGradient === undefined) {
      const block = blocks.subarray(n * rank * stride + column);
      kernels.copyBlock({
        to: part,
        toStride: outputs,
        from: block,
        fromStride: stride,
        rows: rank,
        columns: outputs,
        scale: alpha / rank,
        accumulate: true,
      });
    } else {
      partOfWeightGradient({
        dWeight: part,
        scale: alpha / rank,
        x: downProjected.subarray(n * rank),
        xStride: width,
        dOut: dOut.subarray(column),
        dOutStride: stride,
        rows,
        inputs: rank,
        outputs,
      });
    }
    to += rank * outputs;
  });
}

/** Folds an adapter into a decoder's weights: W + (alpha / rank) A B, summed in double precision. */
export function mergeAdapter(
  config: DecoderConfig,
  settings: AdapterSettings,
  target: DecoderTensors<Float32Array, Float32Array>,
  adapter: AdapterTensors<Float32Array>,
): void {
  const { rank, alpha } = settings;
  target.layers.forEach((weights, layer) => {
    for (const { matrix, inputs, outputs: stride, width, parts } of adaptedMatrices(config, layer, settings)) {
      const { A, B } = adapterPair(adapter, layer, matrix);
      const W = weights[matrix];
      let block = 0;
      parts.forEach(({ column, outputs }, n) => {
        const sums = new Float64Array(outputs);
        for (let i = 0; i < inputs; i++) {
          sums.fill(0);
          for (let j = 0; j < rank; j++) {
            const a = A[i * width + n * rank + j] as number;
            const from = block + j * outputs;
            for (let o = 0; o < outputs; o++) sums[o] = (sums[o] as number) + a * (B[from + o] as number);
          }
          const to = i * stride + column;
          for (let o = 0; o < outputs; o++) W[to + o] = (W[to + o] as number) + (alpha / rank) * (sums[o] as number);
        }
        block += rank * outputs;
      });
    }
  });
}
