import type { DecoderConfig } from '../../contract/architecture.js';
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer.js';
import type { Kernels } from '../../tensor/kernels.js';
import { Decoder, type DecoderOptions, type Scores, type Upstream } from './decoder.js';
import { Optimizer } from './flat-optimizer.js';
import type { Gradient } from './layer/matrix-products.js';
import type { Sequence } from './packed-batch.js';
import { initialiseAdapter } from './weights/adapter-tensors.js';
import { type DecoderTensors, initialise, parameterCount } from './weights/decoder-tensors.js';
import {
  AdapterWeights,
  type BaseWeights,
  type ModelSource,
  type ModelWeights,
  modelWeights,
  trainedWeights,
  zeroGradient,
} from './weights/model-weights.js';

/**
 * A trainable decoder, or an adapter on a decoder that stays as it is: weights, gradient, optimiser. What only training needs is
 * allocated when it begins, and for the trained weights only. Or a base as it is, which scores: whatever would train it throws an
 * ArgumentError.
 */
export class PolicyModel {
  readonly config: DecoderConfig;
  readonly #kernels: Kernels;
  readonly weights: ModelWeights;
  readonly #decoder: Decoder;
  readonly optimizer: Optimizer;
  #gradientTensors: Gradient | undefined;
  #share: Gradient | undefined;
  #accumulated = false;

  constructor(kernels: Kernels, source: ModelSource, options: DecoderOptions = {}) {
    this.#kernels = kernels;
    this.weights = modelWeights(kernels, source);
    this.#decoder = new Decoder(kernels, this.weights, options);
    this.config = this.#decoder.config;
    this.optimizer = new Optimizer(kernels, this.parameters);
  }

  /** The decoder's tensors: of an adapter, its base's. */
  get tensors(): DecoderTensors {
    return this.weights.decoder.tensors;
  }

  /** What is computed with, apart from an adapter. */
  get decoder(): BaseWeights {
    return this.weights.decoder;
  }

  /** What is trained, in one buffer. */
  get trained(): Float32Array {
    return trainedWeights(this.weights).tensors.flat;
  }

  /** Of what is trained; of a base as it is, all. */
  get parameters(): number {
    return this.weights.trained?.tensors.flat.length ?? parameterCount(this.config);
  }

  get #gradient(): Gradient {
    this.#gradientTensors ??= zeroGradient(this.#kernels, this.weights);
    return this.#gradientTensors;
  }

  /** Gradient accumulated so far, before clipping; for tests and diagnoses. */
  get gradient(): Float32Array {
    return this.#gradient.flat;
  }

  /** Random first weights of what is trained. */
  initialise(seed: number, embeddingDeviation?: number): void {
    const trained = trainedWeights(this.weights);
    if (trained instanceof AdapterWeights) initialiseAdapter(this.config, trained.settings, trained.tensors, seed);
    else initialise(this.config, trained.tensors, seed, embeddingDeviation);
    this.weightsChanged();
  }

  /** To be called after writing to `trained` or views of it. */
  weightsChanged(): void {
    trainedWeights(this.weights).changed();
  }

  score(sequences: readonly Sequence[]): Scores {
    return this.#decoder.score(sequences);
  }

  /** Logits after every token: [T, vocabSize]. */
  logits(tokens: Int32Array): Float32Array {
    return this.#decoder.logits(tokens);
  }

  /** Adds a loss's gradient (see `Decoder.accumulate`) and returns the norm of what was added. */
  accumulate(
    sequences: readonly Sequence[],
    upstream: Upstream,
    entropyUpstream?: Upstream,
  ): Scores & { readonly gradientNorm: number } {
    // The norm of one call's share needs a buffer of its own once there is something to add to.
    const target = this.#accumulated ? this.#emptyShare() : this.#gradient;
    const scores = this.#decoder.accumulate(sequences, target, upstream, entropyUpstream);
    const gradientNorm = this.#norm(target);
    if (target !== this.#gradient) this.#kernels.add(this.#gradient.flat, target.flat, this.parameters);
    this.#accumulated = true;
    return { ...scores, gradientNorm };
  }

  /** Clips by the global norm, as torch.nn.utils.clip_grad_norm_ does, updates, and clears the gradient. */
  optimStep({ optimizer, clipNorm, skipAboveNorm = Number.POSITIVE_INFINITY }: OptimStepSettings): OptimStepResult {
    const gradientNorm = this.#norm(this.#gradient);
    const applied = Number.isFinite(gradientNorm) && gradientNorm <= skipAboveNorm;
    if (applied) {
      const gradientScale = clipNorm > 0 ? Math.min(1, clipNorm / (gradientNorm + 1e-6)) : 1;
      this.optimizer.update(optimizer, this.trained, this.#gradient.flat, gradientScale);
      this.weightsChanged();
    }
    this.#gradient.flat.fill(0);
    this.#accumulated = false;
    return { gradientNorm, applied };
  }

  #emptyShare(): Gradient {
    this.#share ??= zeroGradient(this.#kernels, this.weights);
    this.#share.flat.fill(0);
    return this.#share;
  }

  #norm({ flat }: Gradient): number {
    return Math.sqrt(this.#kernels.sumOfSquares(flat, flat.length));
  }
}
