/**
 * The output head: from the normed stream to logits, and from those to log-probs. Logits exist for a block of rows at a
 * time, so that no [N, V] matrix is kept; the backward pass computes them again.
 */
import type { DecoderConfig } from '../../contract/architecture.js';
import type { Arena } from '../../tensor/arena.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Floats } from '../../tensor/memory.js';
import type { PackedMatrix, Products } from '../../tensor/products.js';
import type { PackedBatch } from './packed-batch.js';

/** The most floats of logits at a time. */
const LOGITS_FLOATS = 1 << 20;

/** The rows of a block of logits. A vocabulary too large for any cache gets enough rows to read its matrix seldom. */
export function logitBlockRows(vocabSize: number): number {
  const rows = Math.floor(LOGITS_FLOATS / vocabSize);
  return rows >= 16 ? rows : 64;
}

export interface OutputHead {
  readonly kernels: Kernels;
  /** Those that its matrices are packed for. */
  readonly products: Products;
  readonly arena: Arena;
  readonly config: DecoderConfig;
  /** The packed matrix from the normed stream to logits. */
  readonly weights: PackedMatrix;
}

export interface LogitBlock {
  readonly first: number;
  readonly rows: number;
  readonly hidden: Floats; // [rows, width], the block's rows of the normed stream
  readonly logits: Floats; // [rows or more, vocabSize]
}

/** Computes the logits of all rows of `normed` [count, width], block by block, and passes each block to `visit`. */
export function forEachLogitBlock(
  { products, arena, config: { width, vocabSize }, weights }: OutputHead,
  normed: Floats,
  count: number,
  visit: (block: LogitBlock) => void,
): void {
  const most = Math.min(count, logitBlockRows(vocabSize));
  const logits = arena.take(most * vocabSize);
  for (let first = 0; first < count; first += most) {
    const rows = Math.min(most, count - first);
    const hidden = rowsOf(normed, first, rows, width);
    const sizes = { rows, inputs: width, outputs: vocabSize };
    products.linear({ out: logits, x: hidden, packed: weights, ...sizes, accumulate: false });
    visit({ first, rows, hidden, logits });
  }
}

/** The scores of the N predicted tokens of a batch. */
export interface TokenScores {
  readonly logprobs: Floats; // [N]
  readonly logSumExp: Floats; // [N]
  readonly entropy: Floats; // [N]
}

export function scoreTokens(
  head: OutputHead,
  normed: Floats, // [N, width]
  { predicting, targets, inverseTemperature }: PackedBatch,
): TokenScores {
  const { kernels, arena, config } = head;
  const count = predicting.length;
  const scores = { logprobs: arena.take(count), logSumExp: arena.take(count), entropy: arena.take(count) };
  forEachLogitBlock(head, normed, count, ({ first, rows, logits }) => {
    kernels.tokenLogprobs({
      logprobs: rowsOf(scores.logprobs, first, rows),
      logSumExp: rowsOf(scores.logSumExp, first, rows),
      entropy: rowsOf(scores.entropy, first, rows),
      logits,
      targets: targets.subarray(first, first + rows),
      inverseTemperature: rowsOf(inverseTemperature, first, rows),
      rows,
      vocabSize: config.vocabSize,
    });
  });
  return scores;
}

export interface ScoreGradient {
  readonly dLogprobs: Floats; // [N]
  /** The gradient of the entropies, for a loss that depends on them. */
  readonly dEntropy: Floats | undefined; // [N]
}

/**
 * The backward pass of `scoreTokens`: returns the gradient of `normed`, [N, width].
 * @param gradient The gradient of the head's matrix, which is added to; undefined if the matrix is not trained
 */
export function scoreTokensBackward(
  head: OutputHead,
  { transposed, gradient }: { readonly transposed: PackedMatrix; readonly gradient: Floats | undefined },
  { batch, normed, scores }: { readonly batch: PackedBatch; readonly normed: Floats; readonly scores: TokenScores },
  { dLogprobs, dEntropy }: ScoreGradient,
): Floats {
  const { kernels, products, arena, config } = head;
  const { width, vocabSize } = config;
  const count = batch.predicting.length;
  const dNormed = arena.take(count * width);
  forEachLogitBlock(head, normed, count, ({ first, rows, hidden, logits }) => {
    const block = (values: Floats) => rowsOf(values, first, rows);
    const given = {
      logits,
      dLogprobs: block(dLogprobs),
      logSumExp: block(scores.logSumExp),
      targets: batch.targets.subarray(first, first + rows),
      inverseTemperature: block(batch.inverseTemperature),
      rows,
      vocabSize,
    };
    if (dEntropy === undefined) kernels.tokenLogprobsBackward(given);
    else kernels.tokenEntropyBackward({ ...given, dEntropy: block(dEntropy), entropy: block(scores.entropy) });
    const sizes = { x: logits, rows, inputs: vocabSize, outputs: width };
    products.linear({ out: rowsOf(dNormed, first, rows, width), packed: transposed, ...sizes, accumulate: false });
    if (gradient !== undefined) products.linearWeightGradient({ dWeight: gradient, dOut: hidden, ...sizes });
  });
  return dNormed;
}

const rowsOf = (matrix: Floats, first: number, count: number, width = 1) =>
  matrix.subarray(first * width, (first + count) * width);
