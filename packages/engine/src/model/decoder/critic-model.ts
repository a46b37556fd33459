import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer-settings.js';
import type { Arena } from '../../tensor/arena.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Floats } from '../../tensor/memory.js';
import { Decoder, type DecoderOptions } from './decoder.js';
import { FlatOptimizer } from './flat-optimizer.js';
import { type PackedBatch, packPredicted, type Sequence, unpackPredicted } from './packed-batch.js';
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
    this.#head = {
      values: kernels.allocate(size),
      gradient: kernels.allocate(size),
      optimizer: new FlatOptimizer(kernels, size),
      tensorsOf: (head) => ({ head }),
    };
  }

  get weights(): ModelWeights {
    return this.#trunk.weights;
  }

  /** The head's weights [width], then its bias. */
  get head(): Floats {
    return this.#head.values;
  }

  /** The trained weights below the head in one buffer: the decoder's or the adapter's. */
  get trunk(): Floats {
    return this.#trunk.values;
  }

  get optimizers(): { readonly trunk: FlatOptimizer; readonly head: FlatOptimizer } {
    return { trunk: this.#trunk.optimizer, head: this.#head.optimizer };
  }

  /** Must be called after writing to `trunk`. */
  trunkChanged(): void {
    this.#trunk.weightsChanged();
  }

  /** The gradients accumulated so far, before clipping. */
  get gradient(): { readonly trunk: Floats; readonly head: Floats } {
    return { trunk: this.#trunk.gradient, head: this.#head.gradient };
  }

  /** Computes a value for each token with mask 1, from the tokens before it; 0 elsewhere: [S][T]. */
  async values(sequences: readonly Sequence[]): Promise<Float32Array[]> {
    const rows = sequences.map(({ tokens }) => new Float32Array(tokens.length));
    await this.#decoder.throughHead(sequences, async (batch, hidden, _, arena) => {
      await this.#readValues(sequences, batch, hidden, arena, rows);
    });
    return rows;
  }

  /**
   * Adds the gradient of a loss.
   * @param upstream d loss / d values ([T]) from the values of the sequence at `index`
   */
  async accumulate(
    sequences: readonly Sequence[],
    upstream: (index: number, values: Float32Array) => ArrayLike<number>,
  ): Promise<void> {
    const { width } = this.#decoder.config;
    const { values: head, gradient: dHead } = this.#head;
    const rows = sequences.map(({ tokens }) => new Float32Array(tokens.length));
    const backward = async (batch: PackedBatch, hidden: Floats, dHidden: Floats, arena: Arena) => {
      await this.#readValues(sequences, batch, hidden, arena, rows);
      const slopes = batch.indices.map((index) => upstream(index, rows[index] as Float32Array));
      const count = batch.predicting.length;
      const packed = packPredicted(batch, sequences, slopes, new Float64Array(count));
      this.#kernels.valueHeadBackward({ dHidden, dHead, slopes: packed, hidden, head, rows: count, width });
    };
    await this.#decoder.throughHead(sequences, backward, this.#trunk.gradientTensors);
  }

  /**
   * Clips by the norm of both gradients together, updates trunk and head, and clears the gradients (see `clippedStep`).
   */
  async optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    const result = await clippedStep(this.#kernels, [this.#trunk, this.#head], settings);
    if (result.applied) this.trunkChanged();
    return result;
  }

  /** @throws NonFiniteError when a weight, or a number that an optimiser remembers, is not finite */
  async requireFinite(): Promise<void> {
    for (const part of [this.#trunk, this.#head]) await requireFinite(this.#kernels, part, { optimizer: true });
  }

  async #readValues(
    sequences: readonly Sequence[],
    batch: PackedBatch,
    hidden: Floats,
    arena: Arena,
    rows: readonly Float32Array[],
  ): Promise<void> {
    const count = batch.predicting.length;
    const values = arena.take(count);
    this.#kernels.valueHead({ values, hidden, head: this.head, rows: count, width: this.#decoder.config.width });
    const [read] = await this.#kernels.read([values]);
    const ofBatch = batch.indices.map((index) => rows[index] as Float32Array);
    unpackPredicted(batch, sequences, read, ofBatch);
  }
}
