/** The trained decoder: log-probs of given tokens and, from a gradient on those, the gradient of every weight. */
import type { DecoderConfig } from '../../contract/architecture.js';
import { Arena } from '../../tensor/arena.js';
import type { Kernels, WeightArray } from '../../tensor/kernels.js';
import {
  backwardBuffers,
  backwardLayer,
  forwardLayer,
  type LayerBuffers,
  type LayerRows,
  layerBuffers,
} from './layer/layer-forward.js';
import type { Gradient, Stack } from './layer/matrix-products.js';
import { type PackedBatch, packBatches, type Sequence } from './packed-batch.js';
import { checkConfig, type DecoderTensors } from './weights/decoder-tensors.js';
import type { ModelWeights } from './weights/model-weights.js';
import { ropeTable } from './weights/rotary-table.js';

/** Rows of a batch: enough to keep every kernel busy, few enough for a small model's activations to stay in cache. */
export const DEFAULT_BATCH_ROWS = 1024;
/** Logits exist for a block of rows at a time, of at most this many floats, so that no [T, V] matrix is kept. */
const LOGITS_FLOATS = 1 << 20;

/**
 * Rows of logits to compute at once. Where a vocabulary is too large for a cache anyway, enough to read its matrix
 * seldom.
 */
export function logitRows(vocabSize: number): number {
  const rows = Math.floor(LOGITS_FLOATS / vocabSize);
  return rows >= 16 ? rows : 64;
}

/** Per sequence and token: the log-prob where the mask is 1, 0 elsewhere. */
export interface Scores {
  readonly logprobs: Float32Array[]; // [S][T]
  /** Summed over the predicted tokens, in nats. */
  readonly entropySum: number;
  readonly predicted: number;
}

/**
 * What becomes of the values inside the layers: kept for the backward pass, computed again there from each layer's
 * input, or dropped since no backward pass follows.
 */
type Keep = 'all' | 'inputs' | 'nothing';

export interface DecoderOptions {
  /** Compute the layers' inner values again in the backward pass instead of keeping those of all layers. */
  readonly recompute?: boolean | undefined;
  readonly batchRows?: number | undefined;
}

/** From one row [T] for each of the sequences at `indices` to the gradient of the loss with respect to them. */
export type Upstream = (indices: readonly number[], rows: readonly Float32Array[]) => readonly Float32Array[];

/** What the layers make of a batch. */
interface StackPass {
  readonly layers: LayerBuffers[];
  readonly final: Float32Array; // [N or R, width], the residual stream after the last layer
}

/** Up to what a head sees. */
interface HiddenPass extends StackPass {
  readonly batch: PackedBatch;
  readonly normed: Float32Array; // [N, width]
  readonly inverse: Float32Array; // [N]
}

interface Pass extends HiddenPass {
  readonly logprobs: Float32Array; // [N]
  readonly logSumExp: Float32Array; // [N]
  readonly entropy: Float32Array; // [N]
}

export class Decoder {
  readonly config: DecoderConfig;
  readonly #kernels: Kernels;
  readonly #arena: Arena;
  readonly #rope: Float32Array;
  readonly #weights: ModelWeights;
  readonly #batchRows: number;
  readonly #recompute: boolean;

  constructor(kernels: Kernels, weights: ModelWeights, options: DecoderOptions = {}) {
    this.config = weights.decoder.config;
    checkConfig(this.config);
    this.#kernels = kernels;
    this.#arena = new Arena(kernels);
    this.#rope = ropeTable(kernels, this.config);
    this.#weights = weights;
    this.#batchRows = options.batchRows ?? DEFAULT_BATCH_ROWS;
    this.#recompute = options.recompute ?? false;
  }

  /** @throws ArgumentError when a sequence does not fit the context. */
  score(sequences: readonly Sequence[]): Scores {
    return this.#run(sequences, 'nothing', () => {});
  }

  /**
   * Logits after every token of one sequence: [T, vocabSize]. @throws ArgumentError when it does not fit the context.
   */
  logits(tokens: Int32Array): Float32Array {
    const kernels = this.#kernels;
    const { width, vocabSize, normEpsilon, context } = this.config;
    // The last token of a sequence gets no row, so one more follows that nothing looks at.
    const padded = new Int32Array(tokens.length + 1);
    padded.set(tokens);
    const sequence = { tokens: padded, mask: new Uint8Array(padded.length), temperature: 1 };
    const all = new Float32Array(tokens.length * vocabSize);
    for (const batch of packBatches(this.#arena, [sequence], context, this.#batchRows)) {
      const { rows } = batch;
      const { final } = this.#stackPass(batch, undefined, 'nothing');
      const [normed, inverse] = [this.#arena.take(rows * width), this.#arena.take(rows)];
      kernels.rmsNorm(normed, inverse, final, this.#tensors.finalNorm, rows, width, normEpsilon);
      const head = this.#head;
      this.#inLogitBlocks(rows, (first, n, logits) => {
        kernels.linear(logits, rowsOf(normed, first, n, width), head, n, width, vocabSize, false);
        all.set(logits.subarray(0, n * vocabSize), first * vocabSize);
      });
    }
    return all;
  }

  /**
   * Scores the sequences batch by batch and adds the gradient of a loss to `gradient`.
   * @param upstream d loss / d logprobs ([T] a sequence) from the log-probs of the sequences at `indices`
   * @param entropyUpstream d loss / d entropy likewise from their entropies, for a loss that depends on them
   */
  accumulate(
    sequences: readonly Sequence[],
    gradient: Gradient,
    upstream: Upstream,
    entropyUpstream?: Upstream,
  ): Scores {
    return this.#run(sequences, this.#forBackward, (pass, logprobs) => {
      const { indices } = pass.batch;
      const packed = (rows: readonly Float32Array[]) => this.#packed(pass.batch, sequences, rows);
      const dLogprobs = packed(upstream(indices, logprobs));
      if (entropyUpstream === undefined) return this.#backwardPass(pass, gradient, dLogprobs, undefined);
      const entropies = indices.map((index) => new Float32Array((sequences[index] as Sequence).tokens.length));
      this.#unpack(pass.batch, sequences, pass.entropy, entropies);
      this.#backwardPass(pass, gradient, dLogprobs, packed(entropyUpstream(indices, entropies)));
    });
  }

  /** One number a predicted token [N], from rows [T] of the batch's sequences. */
  #packed({ indices, predicting }: PackedBatch, sequences: readonly Sequence[], rows: readonly Float32Array[]) {
    const values = this.#arena.take(predicting.length);
    let n = 0;
    indices.forEach((index, s) => {
      const { mask } = sequences[index] as Sequence;
      const row = rows[s] as Float32Array;
      for (let t = 1; t < mask.length; t++) if (mask[t] === 1) values[n++] = row[t] as number;
    });
    return values;
  }

  /** The other way round. Returns the number of predicted tokens. */
  #unpack(
    { indices }: PackedBatch,
    sequences: readonly Sequence[],
    values: Float32Array,
    rows: readonly Float32Array[],
  ): number {
    let n = 0;
    indices.forEach((index, s) => {
      const { mask } = sequences[index] as Sequence;
      const row = rows[s] as Float32Array;
      for (let t = 1; t < mask.length; t++) if (mask[t] === 1) row[t] = values[n++] as number;
    });
    return n;
  }

  /**
   * Runs the sequences batch by batch up to what a head sees: the normed stream, a row for each token with mask 1, in
   * order.
   * @param head Given `hidden` [N, width] of the sequences at `indices`; may write d loss / d hidden into `dHidden`,
   * which is 0
   * @param gradient Added to from what `head` wrote; without one nothing goes backwards
   */
  throughHead(
    sequences: readonly Sequence[],
    head: (indices: readonly number[], hidden: Float32Array, dHidden: Float32Array) => void,
    gradient?: Gradient,
  ): void {
    const keep = gradient === undefined ? 'nothing' : this.#forBackward;
    for (const batch of packBatches(this.#arena, sequences, this.config.context, this.#batchRows)) {
      const pass = this.#hiddenPass(batch, keep);
      const dHidden = this.#arena.take(pass.normed.length).fill(0);
      head(batch.indices, pass.normed, dHidden);
      if (gradient !== undefined) this.#backwardHidden(pass, gradient, dHidden);
    }
  }

  #run(
    sequences: readonly Sequence[],
    keep: Keep,
    afterForward: (pass: Pass, logprobs: Float32Array[]) => void,
  ): Scores {
    const all = sequences.map(({ tokens }) => new Float32Array(tokens.length));
    let entropySum = 0;
    let predicted = 0;
    for (const batch of packBatches(this.#arena, sequences, this.config.context, this.#batchRows)) {
      const pass = this.#forwardPass(batch, keep);
      const logprobs = batch.indices.map((index) => all[index] as Float32Array);
      predicted += this.#unpack(batch, sequences, pass.logprobs, logprobs);
      for (const value of pass.entropy) entropySum += value;
      afterForward(pass, logprobs);
    }
    return { logprobs: all, entropySum, predicted };
  }

  /** What a pass keeps that a backward pass follows. */
  get #forBackward(): Keep {
    return this.#recompute ? 'inputs' : 'all';
  }

  get #tensors(): DecoderTensors {
    return this.#weights.decoder.tensors;
  }

  get #head(): WeightArray {
    return this.#weights.decoder.forward.head;
  }

  #stack(direction: 'forward' | 'backward'): Stack {
    const { decoder, adapter } = this.#weights;
    return {
      kernels: this.#kernels,
      config: this.config,
      rope: this.#rope,
      tensors: decoder.tensors,
      packed: decoder[direction],
      adapters: adapter === undefined ? [] : [{ adapter: adapter[direction], end: Number.POSITIVE_INFINITY }],
    };
  }

  /** The rows of a layer: after the last one's attention only those in `predicting` go on. */
  #layerRows({ rows, positions }: PackedBatch, layer: number, predicting: Int32Array | undefined): LayerRows {
    return { rows, positions, kept: layer === this.config.layers - 1 ? predicting : undefined };
  }

  /** `final` has a row for each row in `predicting`, for every row of the batch where that is undefined. */
  #stackPass(batch: PackedBatch, predicting: Int32Array | undefined, keep: Keep): StackPass {
    const arena = this.#arena;
    const { width, layers } = this.config;
    const { rows } = batch;
    const stack = this.#stack('forward');
    const inPlace = keep === 'nothing';
    const saved: LayerBuffers[] = [];
    let stream = arena.take(rows * width);
    this.#kernels.embed(stream, stack.tensors.embedding, batch.tokens, rows, width);
    let shared: LayerBuffers | undefined; // of all layers whose inner values are not kept
    for (let layer = 0; layer < layers; layer++) {
      const own = this.#layerRows(batch, layer, predicting);
      let buffers: LayerBuffers;
      if (keep === 'all' || own.kept !== undefined) {
        buffers = layerBuffers(arena, this.config, own, stream, inPlace, stack.adapters);
      } else {
        shared ??= layerBuffers(arena, this.config, own, stream, inPlace, stack.adapters);
        buffers = { ...shared, input: stream, keptInput: stream };
      }
      saved.push(buffers);
      if (!inPlace || own.kept !== undefined) stream = arena.take((own.kept?.length ?? rows) * width);
      forwardLayer(stack, layer, own, buffers, stream, this.#attend(batch));
    }
    return { layers: saved, final: stream };
  }

  #attend({ starts, sequences }: PackedBatch): Parameters<typeof forwardLayer>[5] {
    return (_, { attended, logSumExp, qkv }) =>
      this.#kernels.attention(attended, logSumExp, qkv, starts, sequences, this.config);
  }

  #hiddenPass(batch: PackedBatch, keep: Keep): HiddenPass {
    const arena = this.#arena;
    const { width, normEpsilon } = this.config;
    const stack = this.#stackPass(batch, batch.predicting, keep);
    const count = batch.predicting.length;
    const pass = { ...stack, batch, normed: arena.take(count * width), inverse: arena.take(count) };
    this.#kernels.rmsNorm(pass.normed, pass.inverse, pass.final, this.#tensors.finalNorm, count, width, normEpsilon);
    return pass;
  }

  #forwardPass(batch: PackedBatch, keep: Keep): Pass {
    const kernels = this.#kernels;
    const arena = this.#arena;
    const { width, vocabSize } = this.config;
    const hidden = this.#hiddenPass(batch, keep);
    const count = batch.predicting.length;
    const pass = {
      ...hidden,
      logprobs: arena.take(count),
      logSumExp: arena.take(count),
      entropy: arena.take(count),
    };
    const head = this.#head;
    this.#inLogitBlocks(count, (first, n, logits) => {
      kernels.linear(logits, rowsOf(pass.normed, first, n, width), head, n, width, vocabSize, false);
      kernels.tokenLogprobs(
        rowsOf(pass.logprobs, first, n),
        rowsOf(pass.logSumExp, first, n),
        rowsOf(pass.entropy, first, n),
        logits,
        batch.targets.subarray(first, first + n),
        rowsOf(batch.inverseTemperature, first, n),
        n,
        vocabSize,
      );
    });
    return pass;
  }

  #backwardPass(
    pass: Pass,
    gradient: Gradient,
    dLogprobs: Float32Array, // [N]
    dEntropy: Float32Array | undefined, // [N]
  ): void {
    const kernels = this.#kernels;
    const arena = this.#arena;
    const { width, vocabSize } = this.config;
    const { batch } = pass;
    const count = batch.predicting.length;
    const stack = this.#stack('backward');
    const head = this.#head;
    const dNormed = arena.take(count * width);
    this.#inLogitBlocks(count, (first, n, logits) => {
      const hidden = rowsOf(pass.normed, first, n, width);
      kernels.linear(logits, hidden, head, n, width, vocabSize, false);
      const own = (values: Float32Array) => rowsOf(values, first, n);
      const [upstream, lse, inverse] = [own(dLogprobs), own(pass.logSumExp), own(batch.inverseTemperature)];
      const targets = batch.targets.subarray(first, first + n);
      if (dEntropy === undefined) kernels.tokenLogprobsBackward(logits, upstream, lse, targets, inverse, n, vocabSize);
      else {
        const [spread, nats] = [own(dEntropy), own(pass.entropy)];
        kernels.tokenEntropyBackward(logits, upstream, spread, lse, nats, targets, inverse, n, vocabSize);
      }
      kernels.linear(rowsOf(dNormed, first, n, width), logits, stack.packed.head, n, vocabSize, width, false);
      const output = gradient.decoder?.output;
      if (output !== undefined) kernels.linearWeightGradient(output, logits, hidden, n, vocabSize, width);
    });
    this.#backwardHidden(pass, gradient, dNormed);
  }

  /** From the gradient of what a head sees, `dNormed` [N, width], on. */
  #backwardHidden(pass: HiddenPass, gradient: Gradient, dNormed: Float32Array): void {
    const kernels = this.#kernels;
    const arena = this.#arena;
    const { width } = this.config;
    const { batch } = pass;
    const count = batch.predicting.length;
    const stack = this.#stack('backward');
    const buffers = backwardBuffers(arena, this.config, batch.rows, stack.adapters);
    let dStream = arena.take(count * width).fill(0);
    kernels.rmsNormBackward(
      dStream,
      gradient.decoder?.finalNorm ?? buffers.dGain,
      dNormed,
      pass.final,
      stack.tensors.finalNorm,
      pass.inverse,
      count,
      width,
    );
    for (let layer = this.config.layers - 1; layer >= 0; layer--) {
      const own = this.#layerRows(batch, layer, batch.predicting);
      const dInput = own.kept === undefined ? dStream : arena.take(batch.rows * width).fill(0);
      const saved = pass.layers[layer] as LayerBuffers;
      // The last layer's values are its own, and still there.
      if (this.#recompute && own.kept === undefined)
        forwardLayer(this.#stack('forward'), layer, own, saved, undefined, this.#attend(batch));
      const rows = { ...own, starts: batch.starts, sequences: batch.sequences };
      backwardLayer(stack, gradient, layer, rows, saved, dStream, dInput, buffers);
      dStream = dInput;
    }
    if (gradient.decoder !== undefined)
      kernels.embedBackward(gradient.decoder.embedding, dStream, batch.tokens, batch.rows, width);
  }

  #inLogitBlocks(count: number, body: (first: number, rows: number, logits: Float32Array) => void): void {
    const block = Math.min(count, logitRows(this.config.vocabSize));
    const logits = this.#arena.take(block * this.config.vocabSize);
    for (let first = 0; first < count; first += block) body(first, Math.min(block, count - first), logits);
  }
}

const rowsOf = (matrix: Float32Array, first: number, count: number, width = 1) =>
  matrix.subarray(first * width, (first + count) * width);
