import type { DecoderConfig, OptimStepResult, OptimStepSettings } from '../../core/backend.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Sequence } from './batch.js';
import { Decoder, type Scores } from './decoder.js';
import { type DecoderTensors, decoderTensors, initialise, parameterCount } from './parameters.js';

/** The optimiser's whole state, as flat as the weights. */
export interface OptimizerState {
  step: number;
  readonly firstMoment: Float32Array; // [parameters]
  readonly secondMoment: Float32Array; // [parameters]
}

/** A trainable decoder: weights, gradient, AdamW. */
export class PolicyModel {
  readonly config: DecoderConfig;
  readonly tensors: DecoderTensors;
  readonly optimizer: OptimizerState;
  readonly #kernels: Kernels;
  readonly #decoder: Decoder;
  readonly #gradient: DecoderTensors;
  #share: DecoderTensors | undefined;
  #accumulated = false;

  constructor(kernels: Kernels, config: DecoderConfig) {
    const count = parameterCount(config);
    this.config = config;
    this.#kernels = kernels;
    this.#decoder = new Decoder(kernels, config);
    this.tensors = decoderTensors(config, kernels.allocate(count));
    this.#gradient = decoderTensors(config, kernels.allocate(count));
    this.optimizer = { step: 0, firstMoment: kernels.allocate(count), secondMoment: kernels.allocate(count) };
  }

  get parameters(): number {
    return this.tensors.flat.length;
  }

  /** Gradient accumulated so far, before clipping; for tests and diagnoses. */
  get gradient(): Float32Array {
    return this.#gradient.flat;
  }

  initialise(seed: number): void {
    initialise(this.config, this.tensors, seed);
    this.weightsChanged();
  }

  /** To be called after writing to `tensors`. */
  weightsChanged(): void {
    this.#decoder.use(this.tensors);
  }

  score(sequences: readonly Sequence[]): Scores {
    return this.#decoder.score(sequences);
  }

  /** Adds a loss's gradient (see `Decoder.accumulate`) and returns the norm of what was added. */
  accumulate(
    sequences: readonly Sequence[],
    upstream: Parameters<Decoder['accumulate']>[2],
  ): Scores & { readonly gradientNorm: number } {
    // The norm of one call's share needs a buffer of its own once there is something to add to.
    const target = this.#accumulated ? this.#emptyShare() : this.#gradient;
    const scores = this.#decoder.accumulate(sequences, target, upstream);
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
      this.optimizer.step++;
      this.#kernels.adamw(
        this.tensors.flat,
        this.#gradient.flat,
        this.optimizer.firstMoment,
        this.optimizer.secondMoment,
        this.parameters,
        {
          ...optimizer,
          step: this.optimizer.step,
          gradientScale: clipNorm > 0 ? Math.min(1, clipNorm / (gradientNorm + 1e-6)) : 1,
        },
      );
      this.weightsChanged();
    }
    this.#gradient.flat.fill(0);
    this.#accumulated = false;
    return { gradientNorm, applied };
  }

  resetOptimizer(): void {
    this.optimizer.step = 0;
    this.optimizer.firstMoment.fill(0);
    this.optimizer.secondMoment.fill(0);
  }

  #emptyShare(): DecoderTensors {
    this.#share ??= decoderTensors(this.config, this.#kernels.allocate(this.parameters));
    this.#share.flat.fill(0);
    return this.#share;
  }

  #norm({ flat }: DecoderTensors): number {
    return Math.sqrt(this.#kernels.sumOfSquares(flat, flat.length));
  }
}
