/** Weights with their gradient and their optimiser, and the step that several of them make together. */

import type { OptimStepResult, OptimStepSettings, PartRates } from '../../contract/optimizer-settings.js';
import { ArgumentError, NonFiniteError } from '../../errors.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Floats } from '../../tensor/memory.js';
import { FlatOptimizer, type WeightSlice } from './flat-optimizer.js';
import {
  type Gradient,
  type ModelWeights,
  TrunkWeights,
  tensorsIn,
  trainedWeights,
  zeroGradient,
} from './weights/model-weights.js';

/** Weights in one flat buffer that one optimiser moves along one gradient. */
export interface TrainedPart {
  readonly values: Floats; // [parameters]
  readonly gradient: Floats; // [parameters]
  readonly optimizer: FlatOptimizer;
  /** The tensors of a copy of `values`, views of it by their names, for messages. */
  tensorsOf(copy: Float32Array): object;
  /** The slices of `values` that a step with these rates changes. Default: all of them, at the settings' rate. */
  slicesAt?(rates: PartRates | undefined): readonly WeightSlice[] | undefined;
}

/**
 * The trained weights of a model: a decoder's, an adapter's on a base that stays as it is, or a trunk's with those of
 * its agents' adapters. The gradient is allocated when it is first needed. Every member but `weights` and `optimizer`
 * throws an ArgumentError for a base without an adapter, which is never trained.
 */
export class TrainedModelWeights implements TrainedPart {
  readonly weights: ModelWeights;
  readonly optimizer: FlatOptimizer;
  protected readonly kernels: Kernels;
  #gradient: Gradient | undefined;

  constructor(kernels: Kernels, weights: ModelWeights) {
    this.kernels = kernels;
    this.weights = weights;
    this.optimizer = new FlatOptimizer(kernels, weights.trained?.tensors.flat.length ?? 0);
  }

  /** The trained weights in one buffer. */
  get values(): Floats {
    return trainedWeights(this.weights).tensors.flat;
  }

  tensorsOf(copy: Float32Array): object {
    const { decoder, adapter, adapters } = tensorsIn(this.weights, copy);
    if (adapters === undefined) return adapter ?? decoder ?? {};
    return { trunk: decoder, ...Object.fromEntries(adapters) };
  }

  /** @throws ArgumentError for rates of parts that the model does not have */
  slicesAt(rates: PartRates | undefined): readonly WeightSlice[] | undefined {
    if (rates === undefined) return undefined;
    const trained = trainedWeights(this.weights);
    if (!(trained instanceof TrunkWeights)) throw new ArgumentError('only agents with adapters have rates of parts');
    const { trunk, tensors } = trained;
    const border = trunk.tensors.flat.length;
    if (rates.trunk === rates.adapters && rates.trunk === 1) return undefined;
    const slices = [
      { start: 0, end: border, rate: rates.trunk },
      { start: border, end: tensors.flat.length, rate: rates.adapters },
    ];
    return slices.filter(({ rate }) => rate > 0);
  }

  get gradientTensors(): Gradient {
    this.#gradient ??= zeroGradient(this.kernels, this.weights);
    return this.#gradient;
  }

  /** The gradient accumulated so far, before clipping. */
  get gradient(): Floats {
    return this.gradientTensors.flat;
  }

  /** Must be called after writing to `values` or views of it. */
  weightsChanged(): void {
    trainedWeights(this.weights).changed();
  }
}

/** The L2 norm of all gradients together. */
export async function gradientNorm(kernels: Kernels, gradients: readonly Floats[]): Promise<number> {
  const sums = await Promise.all(gradients.map((flat) => kernels.sumOfSquares({ x: flat, length: flat.length })));
  return Math.sqrt(sums.reduce((all, sum) => all + sum, 0));
}

/**
 * Clips the gradients of the parts by their common norm, as torch.nn.utils.clip_grad_norm_ does, updates the parts, and
 * clears the gradients. A norm that is not finite or above `skipAboveNorm` updates nothing.
 * @throws ArgumentError for rates of parts that a model does not have, before anything changes
 * @throws NonFiniteError when the update has left numbers that are not finite; with `undoNonFinite` it was undone
 */
export async function clippedStep(
  kernels: Kernels,
  parts: readonly TrainedPart[],
  settings: OptimStepSettings,
): Promise<OptimStepResult> {
  const { optimizer, clipNorm, skipAboveNorm = Number.POSITIVE_INFINITY, undoNonFinite = false } = settings;
  const steps = parts.map((part) => ({ part, slices: part.slicesAt?.(settings.partRates) }));
  for (const { part, slices } of steps) if (slices !== undefined) clearBetween(kernels, part.gradient, slices);
  const norm = await gradientNorm(
    kernels,
    parts.map(({ gradient }) => gradient),
  );
  const result = stepResult(norm, skipAboveNorm);
  if (result.applied) {
    const scale = clipNorm > 0 ? Math.min(1, clipNorm / (norm + 1e-6)) : 1;
    const copies = undoNonFinite ? parts.map((part) => copyOf(kernels, part)) : [];
    try {
      for (const { part, slices } of steps) part.optimizer.update(optimizer, part.values, part.gradient, scale, slices);
      // A moment that is NaN reaches the weights with the next update. All moments are checked before a save.
      for (const part of parts) await requireFinite(kernels, part, { optimizer: false });
    } catch (error) {
      for (const copy of copies) copy.restore();
      for (const { gradient } of parts) kernels.fill({ x: gradient, value: 0 });
      throw error;
    } finally {
      for (const copy of copies) copy.free();
    }
  }
  for (const { gradient } of parts) kernels.fill({ x: gradient, value: 0 });
  return result;
}

/** Clears a gradient between its slices: the weights there stay as they are, and do not count in the norm. */
function clearBetween(kernels: Kernels, gradient: Floats, slices: readonly WeightSlice[]): void {
  let end = 0;
  for (const { start, end: next } of [...slices, { start: gradient.length, end: 0 }]) {
    if (start > end) kernels.fill({ x: gradient.subarray(end, start), value: 0 });
    end = next;
  }
}

function copyOf(kernels: Kernels, { values, optimizer }: TrainedPart): { restore(): void; free(): void } {
  const weights = kernels.allocate(values.length);
  kernels.copy({ to: weights, from: values });
  const state = optimizer.copyHere();
  return {
    restore() {
      kernels.copy({ to: values, from: weights });
      state.restore();
    },
    free() {
      kernels.free(weights);
      state.free();
    },
  };
}

/** Whether a gradient of this norm leads to an update. The norm is left out of the result if it is not finite. */
function stepResult(norm: number, skipAboveNorm: number): OptimStepResult {
  if (!Number.isFinite(norm)) return { applied: false, why: 'not-finite' };
  return norm <= skipAboveNorm ? { applied: true, norm } : { applied: false, why: 'above-limit', norm };
}

/**
 * @throws NonFiniteError naming the tensor, when a weight or, where the optimiser counts, a number that it remembers is
 *   not finite
 */
export async function requireFinite(
  kernels: Kernels,
  part: TrainedPart,
  { optimizer }: { readonly optimizer: boolean },
): Promise<void> {
  const named = Object.entries({ weights: part.values, ...(optimizer ? part.optimizer.state.buffers : {}) });
  const sums = await Promise.all(named.map(([, buffer]) => kernels.sumOfSquares({ x: buffer, length: buffer.length })));
  for (const [i, [name, buffer]] of named.entries()) {
    if (Number.isFinite(sums[i])) continue; // sums in double precision
    const [copy] = await kernels.read([buffer]);
    const at = copy.findIndex((value) => !Number.isFinite(value));
    if (at < 0) continue;
    const what = name === 'weights' ? 'a weight' : `the optimiser's ${name.replace('_', ' ')}`;
    throw new NonFiniteError(`${what} of ${tensorAt(part.tensorsOf(copy), 4 * at)} is ${copy[at]}`);
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
