/** Weights with their gradient and their optimiser, and the step that several of them make together. */
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer-settings.js';
import { NonFiniteError } from '../../core/errors.js';
import type { Kernels } from '../../tensor/kernels.js';
import { FlatOptimizer } from './flat-optimizer.js';
import { type Gradient, type ModelWeights, trainedWeights, zeroGradient } from './weights/model-weights.js';

/** Weights in one flat buffer that one optimiser moves along one gradient. */
export interface TrainedPart {
  readonly values: Float32Array; // [parameters]
  readonly gradient: Float32Array; // [parameters]
  readonly optimizer: FlatOptimizer;
  /** The tensors that lie in `values`, for messages. */
  readonly tensors: object;
}

/**
 * The trained weights of a model: those of a decoder, or those of an adapter on a base that stays as it is. The
 * gradient is allocated when it is first needed. Every member but `weights` and `optimizer` throws an ArgumentError for
 * a base without an adapter, which is never trained.
 */
export class TrainedModelWeights implements TrainedPart {
  readonly weights: ModelWeights;
  readonly optimizer: FlatOptimizer;
  readonly #kernels: Kernels;
  #gradient: Gradient | undefined;

  constructor(kernels: Kernels, weights: ModelWeights) {
    this.#kernels = kernels;
    this.weights = weights;
    this.optimizer = new FlatOptimizer(kernels, weights.trained?.tensors.flat.length ?? 0);
  }

  get values(): Float32Array {
    return trainedWeights(this.weights).tensors.flat;
  }

  get tensors(): object {
    return trainedWeights(this.weights).tensors;
  }

  get gradientTensors(): Gradient {
    this.#gradient ??= zeroGradient(this.#kernels, this.weights);
    return this.#gradient;
  }

  get gradient(): Float32Array {
    return this.gradientTensors.flat;
  }

  /** Must be called after writing to `values` or views of it. */
  changed(): void {
    trainedWeights(this.weights).changed();
  }
}

/** The L2 norm of all gradients together. */
export function gradientNorm(kernels: Kernels, gradients: readonly Float32Array[]): number {
  return Math.sqrt(gradients.reduce((sum, flat) => sum + kernels.sumOfSquares(flat, flat.length), 0));
}

/**
 * Clips the gradients of the parts by their common norm, as torch.nn.utils.clip_grad_norm_ does, updates the parts, and
 * clears the gradients. A norm that is not finite or above `skipAboveNorm` updates nothing.
 * @throws NonFiniteError when the update has left numbers that are not finite
 */
export function clippedStep(
  kernels: Kernels,
  parts: readonly TrainedPart[],
  { optimizer, clipNorm, skipAboveNorm = Number.POSITIVE_INFINITY }: OptimStepSettings,
): OptimStepResult {
  const norm = gradientNorm(
    kernels,
    parts.map(({ gradient }) => gradient),
  );
  const result = stepResult(norm, skipAboveNorm);
  if (result.applied) {
    const scale = clipNorm > 0 ? Math.min(1, clipNorm / (norm + 1e-6)) : 1;
    for (const part of parts) part.optimizer.update(optimizer, part.values, part.gradient, scale);
    // Moments that are no numbers reach the weights with the next update; all of them are looked at before a save.
    for (const part of parts) requireFiniteIn(kernels, part, { weights: part.values });
  }
  for (const { gradient } of parts) gradient.fill(0);
  return result;
}

/** Whether a gradient of this norm leads to an update. A norm that is no finite number is not told. */
function stepResult(norm: number, skipAboveNorm: number): OptimStepResult {
  if (!Number.isFinite(norm)) return { applied: false, why: 'not-finite' };
  return norm <= skipAboveNorm ? { applied: true, norm } : { applied: false, why: 'above-limit', norm };
}

/**
 * @throws NonFiniteError naming the tensor, when a weight or, where the optimiser counts, a number that it remembers is
 *   not finite
 */
export function requireFinite(
  kernels: Kernels,
  part: TrainedPart,
  { optimizer }: { readonly optimizer: boolean },
): void {
  requireFiniteIn(kernels, part, { weights: part.values, ...(optimizer ? part.optimizer.state.buffers : {}) });
}

function requireFiniteIn(
  kernels: Kernels,
  { values, tensors }: TrainedPart,
  buffers: Readonly<Record<string, Float32Array>>,
): void {
  for (const [name, buffer] of Object.entries(buffers)) {
    if (Number.isFinite(kernels.sumOfSquares(buffer, buffer.length))) continue; // sums in double precision
    const at = buffer.findIndex((value) => !Number.isFinite(value));
    if (at < 0) continue;
    const what = name === 'weights' ? 'a weight' : `the optimiser's ${name.replace('_', ' ')}`;
    throw new NonFiniteError(`${what} of ${tensorAt(tensors, values.byteOffset + 4 * at)} is ${buffer[at]}`);
  }
}

/** The name of the tensor that holds a byte of the flat buffer, such as `layers.3.qkv`. */
function tensorAt(tensors: object, byte: number): string | undefined {
  for (const [name, tensor] of Object.entries(tensors) as [string, unknown][]) {
    if (name === 'flat' || typeof tensor !== 'object' || tensor === null) continue;
    if (ArrayBuffer.isView(tensor)) {
      if (byte >= tensor.byteOffset && byte < tensor.byteOffset + tensor.byteLength) return name;
      continue;
    }
    const inner = tensorAt(tensor, byte);
    if (inner !== undefined) return `${name}.${inner}`;
  }
  return undefined;
}
