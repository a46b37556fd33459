import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer.js';
import type { Kernels } from '../../tensor/kernels.js';
import { Decoder, type DecoderOptions } from './decoder.js';
import { Optimizer } from './flat-optimizer.js';
import type { Gradient } from './layer/matrix-products.js';
import type { Sequence } from './packed-batch.js';
import {
  type ModelSource,
  type ModelWeights,
  modelWeights,
  trainedWeights,
  zeroGradient,
} from './weights/model-weights.js';

/**
 * A decoder, or an adapter on one, with a head of one number: the value of a position is its normed stream times the head's
 * weights plus a bias. The head begins at 0, and so do all values.
 */
export class CriticModel {
  /** Weights [width], then the bias. */
  readonly head: Float32Array;
  readonly optimizers: { readonly trunk: Optimizer; readonly head: Optimizer };
  readonly #kernels: Kernels;
  readonly weights: ModelWeights;
  readonly #decoder: Decoder;
  readonly #headGradient: Float32Array; // [width + 1]
  #trunkGradient: Gradient | undefined;

  constructor(kernels: Kernels, source: ModelSource, options: DecoderOptions = {}) {
    this.#kernels = kernels;
    this.weights = modelWeights(kernels, source);
    this.#decoder = new Decoder(kernels, this.weights, options);
    const size = this.#decoder.config.width + 1;
    this.head = kernels.allocate(size);
    this.#headGradient = kernels.allocate(size);
    this.optimizers = { trunk: new Optimizer(kernels, this.trunk.length), head: new Optimizer(kernels, size) };
  }

  /** What is trained beside the head, in one buffer. */
  get trunk(): Float32Array {
    return trainedWeights(this.weights).tensors.flat;
  }

  /** To be called after writing to `trunk`. */
  trunkChanged(): void {
    trainedWeights(this.weights).changed();
  }

  /** The gradients accumulated so far, before clipping. */
  get gradient(): { readonly trunk: Float32Array; readonly head: Float32Array } {
    return { trunk: this.#gradient.flat, head: this.#headGradient };
  }

  /** A value for each token with mask 1, from the tokens before it; 0 elsewhere: [S][T]. */
  values(sequences: readonly Sequence[]): Float32Array[] {
    const rows = sequences.map(({ tokens }) => new Float32Array(tokens.length));
    this.#decoder.throughHead(sequences, (indices, hidden) => this.#read(sequences, indices, hidden, rows));
    return rows;
  }

  /**
   * Adds a loss's gradient.
   * @param upstream d loss / d values ([T] a sequence) from the values of the sequence at `index`
   */
  accumulate(
    sequences: readonly Sequence[],
    upstream: (index: number, values: Float32Array) => ArrayLike<number>,
  ): void {
    const { width } = this.#decoder.config;
    const [head, dHead] = [this.head, this.#headGradient];
    const rows = sequences.map(({ tokens }) => new Float32Array(tokens.length));
    const learn = (indices: readonly number[], hidden: Float32Array, dHidden: Float32Array) => {
      this.#read(sequences, indices, hidden, rows);
      let n = 0;
      for (const index of indices) {
        const slopes = upstream(index, rows[index] as Float32Array);
        const { mask } = sequences[index] as Sequence;
        for (let t = 1; t < mask.length; t++) {
          if (mask[t] !== 1) continue;
          const slope = slopes[t] as number;
          const first = n++ * width;
          for (let i = 0; i < width; i++) {
            dHidden[first + i] = slope * (head[i] as number);
            dHead[i] = (dHead[i] as number) + slope * (hidden[first + i] as number);
          }
          dHead[width] = (dHead[width] as number) + slope;
        }
      }
    };
    this.#decoder.throughHead(sequences, learn, this.#gradient);
  }

  /** Clips by the norm of both gradients together, updates, and clears them. */
  optimStep({ optimizer, clipNorm, skipAboveNorm = Number.POSITIVE_INFINITY }: OptimStepSettings): OptimStepResult {
    const gradients = [this.#gradient.flat, this.#headGradient] as const;
    const [trunk, head] = gradients;
    const squares = gradients.map((flat) => this.#kernels.sumOfSquares(flat, flat.length));
    const gradientNorm = Math.sqrt((squares[0] as number) + (squares[1] as number));
    const applied = Number.isFinite(gradientNorm) && gradientNorm <= skipAboveNorm;
    if (applied) {
      const scale = clipNorm > 0 ? Math.min(1, clipNorm / (gradientNorm + 1e-6)) : 1;
      this.optimizers.trunk.update(optimizer, this.trunk, trunk, scale);
      this.optimizers.head.update(optimizer, this.head, head, scale);
      this.trunkChanged();
    }
    for (const flat of gradients) flat.fill(0);
    return { gradientNorm, applied };
  }

  /** Writes the values of a batch into `rows`. Sums run in order, in double precision. */
  #read(
    sequences: readonly Sequence[],
    indices: readonly number[],
    hidden: Float32Array,
    rows: readonly Float32Array[],
  ): void {
    const { width } = this.#decoder.config;
    let n = 0;
    for (const index of indices) {
      const { mask } = sequences[index] as Sequence;
      const row = rows[index] as Float32Array;
      for (let t = 1; t < mask.length; t++) {
        if (mask[t] !== 1) continue;
        const first = n++ * width;
        let value = this.head[width] as number;
        for (let i = 0; i < width; i++) value += (hidden[first + i] as number) * (this.head[i] as number);
        row[t] = value;
      }
    }
  }

  get #gradient(): Gradient {
    this.#trunkGradient ??= zeroGradient(this.#kernels, this.weights);
    return this.#trunkGradient;
  }
}
