/** The trained decoder: log-probs of given tokens and, from a gradient on those, the gradient of every weight. */
import type { DecoderConfig, Precision } from '../../contract/architecture.js';
import { Arena } from '../../tensor/arena.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Floats } from '../../tensor/memory.js';
import { type Products, productsIn } from '../../tensor/products.js';
import { batchRows } from './layer/layer-buffers.js';
import { type Keep, LayerStack, type TrunkPass } from './layer/layer-stack.js';
import {
  forEachLogitBlock,
  type OutputHead,
  type ScoreGradient,
  scoreTokens,
  scoreTokensBackward,
  type TokenScores,
} from './output-head.js';
import {
  type PackedBatch,
  type Packing,
  packBatches,
  packPredicted,
  type Sequence,
  unpackPredicted,
} from './packed-batch.js';
import { checkConfig, parameterCount } from './weights/decoder-tensors.js';
import type { Gradient, ModelWeights } from './weights/model-weights.js';

/**
 * Models of at least so many parameters pack their sequences as trees: tokens that sequences have in common are
 * computed once. Sums over rows then run in another order, so smaller models, whose runs are short, keep their bits.
 */
const TREE_PARAMETERS = 4_000_000;

/** The log-probs of sequences, and the entropies at their predicted tokens. */
export interface SequenceScores {
  /** For each sequence and token: the log-prob where the mask is 1, 0 elsewhere. */
  readonly logprobs: Float32Array[]; // [S][T]
  /** In nats, at the sequence's temperature; 0 where masked. */
  readonly entropies: readonly Float32Array[]; // [sequences][T]
}

export interface DecoderOptions {
  /** True keeps only the layers' inputs, and computes their inner values again in the backward pass. */
  readonly recompute?: boolean | undefined;
  /** The precision of matrix products. Default float32. */
  readonly precision?: Precision | undefined;
  /** Whether sequences that begin alike share rows. By default the model's size decides (`packsTrees`). */
  readonly tree?: boolean | undefined;
  /** Working memory that several models use in turn. Default: the decoder's own. */
  readonly arena?: Arena | undefined;
}

export const packsTrees = (config: DecoderConfig): boolean => parameterCount(config) >= TREE_PARAMETERS;

/**
 * A function from one row [T] for each of the sequences at `indices` to the gradient of the loss with respect to them.
 */
export type Upstream = (indices: readonly number[], rows: readonly Float32Array[]) => readonly Float32Array[];

interface ScoredPass extends TrunkPass {
  readonly scores: TokenScores;
}

/**
 * A decoder that computes with the given weights, one call after the other: its working memory is allocated once and
 * reused.
 */
export class Decoder {
  readonly config: DecoderConfig;
  readonly #kernels: Kernels;
  readonly arena: Arena;
  readonly #trunk: LayerStack;
  readonly #weights: ModelWeights;
  readonly #recompute: boolean;
  readonly #precision: Precision;
  readonly #products: Products;
  readonly #packing: Packing;

  constructor(kernels: Kernels, weights: ModelWeights, options: DecoderOptions = {}) {
    this.config = weights.decoder.config;
    checkConfig(this.config);
    this.#kernels = kernels;
    this.arena = options.arena ?? new Arena(kernels);
    this.#weights = weights;
    this.#recompute = options.recompute ?? false;
    this.#precision = options.precision ?? 'float32';
    this.#products = productsIn(this.#precision, kernels);
    this.#packing = {
      context: this.config.context,
      maxRows: batchRows(this.config, weights.adapter?.settings, this.#recompute),
      tree: options.tree ?? packsTrees(this.config),
    };
    this.#trunk = new LayerStack(kernels, this.arena, weights, this.#precision);
  }

  /** Computes the log-probs of sequences. @throws ArgumentError when a sequence does not fit the context */
  score(sequences: readonly Sequence[]): Promise<SequenceScores> {
    return this.#run(sequences, 'nothing', () => {});
  }

  /**
   * Computes the logits after every token of one sequence: [T, vocabSize].
   * @throws ArgumentError when it does not fit the context
   */
  async logits(tokens: Int32Array): Promise<Float32Array> {
    const { vocabSize } = this.config;
    // The last token of a sequence gets no row, so a token is appended whose value has no effect.
    const padded = new Int32Array(tokens.length + 1);
    padded.set(tokens);
    const sequence = { tokens: padded, mask: new Uint8Array(padded.length), temperature: 1 };
    const all = new Float32Array(tokens.length * vocabSize);
    const blocks: Promise<void>[] = [];
    for (const batch of packBatches(this.arena, [sequence], this.#packing)) {
      const { normed } = this.#trunk.forward(batch, undefined, 'nothing');
      forEachLogitBlock(this.#head, normed, batch.rows, ({ first, rows, logits }) => {
        const block = this.#kernels.read([logits.subarray(0, rows * vocabSize)]);
        blocks.push(block.then(([numbers]) => all.set(numbers, first * vocabSize)));
      });
    }
    await Promise.all(blocks);
    return all;
  }

  /**
   * Scores the sequences batch by batch and adds the gradient of a loss to `gradient`.
   * @param upstream d loss / d logprobs ([T] a sequence) from the log-probs of the sequences at `indices`
   * @param entropyUpstream d loss / d entropies likewise from their entropies, for a loss that depends on them
   */
  accumulate(
    sequences: readonly Sequence[],
    gradient: Gradient,
    upstream: Upstream,
    entropyUpstream?: Upstream,
  ): Promise<SequenceScores> {
    return this.#run(sequences, this.#keepForBackward, (pass, logprobs, entropies) => {
      const { batch } = pass;
      const { indices } = batch;
      const packed = (rows: readonly Float32Array[]) =>
        packPredicted(batch, sequences, rows, new Float32Array(batch.predicting.length));
      const ofLogprobs = packed(upstream(indices, logprobs));
      if (entropyUpstream === undefined) {
        const [dLogprobs] = this.arena.takeWritten([ofLogprobs]);
        return this.#backward(pass, gradient, { dLogprobs, dEntropy: undefined });
      }
      const ofEntropies = packed(entropyUpstream(indices, entropies));
      const [dLogprobs, dEntropy] = this.arena.takeWritten([ofLogprobs, ofEntropies]);
      this.#backward(pass, gradient, { dLogprobs, dEntropy });
    });
  }

  /**
   * Runs the sequences batch by batch up to the input of a head: the normed stream, one row for each token with mask 1,
   * in order.
   * @param head Receives `hidden` [N, width] of a batch, and an arena for its own memory. If there is a gradient, it
   *   writes d loss / d hidden into `dHidden`
   * @param gradient The gradient to add to; without one there is no backward pass
   */
  async throughHead(
    sequences: readonly Sequence[],
    head: (batch: PackedBatch, hidden: Floats, dHidden: Floats, arena: Arena) => Promise<void>,
    gradient?: Gradient,
  ): Promise<void> {
    const keep = gradient === undefined ? 'nothing' : this.#keepForBackward;
    for (const batch of packBatches(this.arena, sequences, this.#packing)) {
      const pass = this.#trunk.forward(batch, batch.predicting, keep);
      const dHidden = this.arena.take(pass.normed.length);
      await head(batch, pass.normed, dHidden, this.arena);
      if (gradient !== undefined) this.#trunk.backward(pass, gradient, dHidden, this.#recompute);
    }
  }

  async #run(
    sequences: readonly Sequence[],
    keep: Keep,
    afterForward: (pass: ScoredPass, logprobs: Float32Array[], entropies: Float32Array[]) => void,
  ): Promise<SequenceScores> {
    const all = sequences.map(({ tokens }) => new Float32Array(tokens.length));
    const entropies = sequences.map(({ tokens }) => new Float32Array(tokens.length));
    for (const batch of packBatches(this.arena, sequences, this.#packing)) {
      const trunk = this.#trunk.forward(batch, batch.predicting, keep);
      const pass = { ...trunk, scores: scoreTokens(this.#head, trunk.normed, batch) };
      const logprobs = batch.indices.map((index) => all[index] as Float32Array);
      const [ofTokens, entropy] = await this.#kernels.read([pass.scores.logprobs, pass.scores.entropy]);
      const spreads = batch.indices.map((index) => entropies[index] as Float32Array);
      unpackPredicted(batch, sequences, ofTokens, logprobs);
      unpackPredicted(batch, sequences, entropy, spreads);
      afterForward(pass, logprobs, spreads);
    }
    return { logprobs: all, entropies };
  }

  #backward(pass: ScoredPass, gradient: Gradient, upstream: ScoreGradient): void {
    const { head: transposed } = this.#weights.decoder.packed('backward', this.#precision);
    const head = { transposed, gradient: gradient.decoder?.output };
    const dNormed = scoreTokensBackward(this.#head, head, pass, upstream);
    this.#trunk.backward(pass, gradient, dNormed, this.#recompute);
  }

  get #keepForBackward(): Keep {
    return this.#recompute ? 'inputs' : 'all';
  }

  get #head(): OutputHead {
    const { head: weights } = this.#weights.decoder.packed('forward', this.#precision);
    return { kernels: this.#kernels, products: this.#products, arena: this.arena, config: this.config, weights };
  }
}
