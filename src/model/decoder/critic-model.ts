import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer-settings.js';
import type { Kernels } from '../../tensor/kernels.js';
import { Decoder, type DecoderOptions } from './decoder.js';
import { FlatOptimizer } from './flat-optimizer.js';
import type { Sequence } from './packed-batch.js';
import { clippedStep, requireFinite, TrainedModelWeights, type TrainedPart } from './trained-part.js';
import { type ModelSource, type ModelWeights, modelWeights, trainedWeights } from './weights/model-weights.js';

/**
 * A critic: a decoder, or an adapter on one, with a value head. The value of a position is its normed stream times the
 * head's weights plus a bias. The head is 0 at first, and so are all values.
 */
export class CriticModel {
  readonly #kernels: Kernels;
  readonly #decoder: Decoder;
  readonly #trunk: TrainedModelWeights;
  readonly #head: TrainedPart;

  /** @throws ArgumentError when `source` is a base without an adapter: it has no weights to train */
  constructor(kernels: Kernels, source: ModelSource, options: DecoderOptions = {}) {
    const weights = modelWeights(kernels, source);
    trainedWeights(weights);
    this.#kernels = kernels;
    this.#trunk = new TrainedModelWeights(kernels, weights);
    this.#decoder = new Decoder(kernels, this.weights, options);
    const size = this.#decoder.config.width + 1;
    const values = kernels.allocate(size);
    this.#head = {
      values,
      gradient: kernels.allocate(size),
      optimizer: new FlatOptimizer(kernels, size),
      tensors: { head: values },
    };
  }

  get weights(): ModelWeights {
    return this.#trunk.weights;
  }

  /** The head's weights [width], then its bias. */
  get head(): Float32Array {
    return this.#head.values;
  }

  /** The trained weights below the head in one buffer: the decoder's or the adapter's. */
  get trunk(): Float32Array {
    return this.#trunk.values;
  }

  get optimizers(): { readonly trunk: FlatOptimizer; readonly head: FlatOptimizer } {
    return { trunk: this.#trunk.optimizer, head: this.#head.optimizer };
  }

  /** Must be called after writing to `trunk`. */
  trunkChanged(): void {
    this.#trunk.changed();
  }

  /** The gradients accumulated so far, before clipping. */
  get gradient(): { readonly trunk: Float32Array; readonly head: Float32Array } {
    return { trunk: this.#trunk.gradient, head: this.#head.gradient };
  }

  /** Computes a value for each token with mask 1, from the tokens before it; 0 elsewhere: [S][T]. */
  values(sequences: readonly Sequence[]): Float32Array[] {
    const rows = sequences.map(({ tokens }) => new Float32Array(tokens.length));
    this.#decoder.throughHead(sequences, (indices, hidden) => this.#writeValues(sequences, indices, hidden, rows));
    return rows;
  }

  /**
   * Adds the gradient of a loss.
   * @param upstream d loss / d values ([T]) from the values of the sequence at `index`
   */
  accumulate(
    sequences: readonly Sequence[],
    upstream: (index: number, values: Float32Array) => ArrayLike<number>,
  ): void {
    const { width } = this.#decoder.config;
    const { values: head, gradient: dHead } = this.#head;
    const rows = sequences.map(({ tokens }) => new Float32Array(tokens.length));
    const backward = (indices: readonly number[], hidden: Float32Array, dHidden: Float32Array) => {
      this.#writeValues(sequences, indices, hidden, rows);
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
    this.#decoder.throughHead(sequences, backward, this.#trunk.gradientTensors);
  }

  /**
   * Clips by the norm of both gradients together, updates trunk and head, and clears the gradients (see `clippedStep`).
   */
  optimStep(settings: OptimStepSettings): OptimStepResult {
    const result = clippedStep(this.#kernels, [this.#trunk, this.#head], settings);
    if (result.applied) this.trunkChanged();
    return result;
  }

  /** @throws NonFiniteError when a weight, or a number that an optimiser remembers, is not finite */
  requireFinite(): void {
    for (const part of [this.#trunk, this.#head]) requireFinite(this.#kernels, part, { optimizer: true });
  }

  /** Writes the values of a batch into `rows`. Sums run in order, in double precision. */
  #writeValues(
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
}
