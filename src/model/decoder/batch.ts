import { ArgumentError } from '../../core/errors.js';
import type { Kernels } from '../../tensor/kernels.js';

/** A sequence to learn from or to score: T tokens, of which those with mask 1 are predicted. */
export interface Sequence {
  readonly tokens: Int32Array; // [T]
  readonly mask: Uint8Array; // [T]
  readonly temperature: number;
}

/**
 * Sequences packed without padding. Row i of a sequence holds token i and predicts token i + 1; the last token predicts
 * nothing and gets no row.
 */
export interface PackedBatch {
  /** Positions in the caller's list. */
  readonly indices: readonly number[];
  readonly rows: number; // R
  readonly sequences: number; // S
  readonly tokens: Int32Array; // [R]
  readonly positions: Int32Array; // [R]
  readonly starts: Int32Array; // [S + 1]
  /** Rows whose next token is predicted, with that token and 1 / temperature. */
  readonly predicting: Int32Array; // [N]
  readonly targets: Int32Array; // [N]
  readonly inverseTemperature: Float32Array; // [N]
}

/** Packs sequences in order into batches of at most `maxRows` rows (a longer sequence is a batch of its own). */
export function packBatches(
  kernels: Kernels,
  sequences: readonly Sequence[],
  context: number,
  maxRows: number,
): PackedBatch[] {
  const batches: PackedBatch[] = [];
  let indices: number[] = [];
  let rows = 0;
  const flush = () => {
    if (indices.length > 0) batches.push(packBatch(kernels, sequences, indices, rows));
    indices = [];
    rows = 0;
  };
  sequences.forEach(({ tokens, mask }, index) => {
    const own = tokens.length - 1;
    if (own > context)
      throw new ArgumentError(`a sequence of ${tokens.length} tokens does not fit a context of ${context}`);
    if (mask[0] === 1) throw new ArgumentError('the first token of a sequence cannot be predicted: its mask must be 0');
    if (own < 1) return;
    if (rows + own > maxRows) flush();
    indices.push(index);
    rows += own;
  });
  flush();
  return batches;
}

function packBatch(
  kernels: Kernels,
  sequences: readonly Sequence[],
  indices: readonly number[],
  rows: number,
): PackedBatch {
  const tokens = kernels.allocateIntegers(rows);
  const positions = kernels.allocateIntegers(rows);
  const starts = kernels.allocateIntegers(indices.length + 1);
  const predicting: number[] = [];
  const targets: number[] = [];
  const inverse: number[] = [];
  let row = 0;
  indices.forEach((index, s) => {
    const sequence = sequences[index] as Sequence;
    starts[s] = row;
    for (let t = 0; t + 1 < sequence.tokens.length; t++, row++) {
      tokens[row] = sequence.tokens[t] as number;
      positions[row] = t;
      if (sequence.mask[t + 1] !== 1) continue;
      predicting.push(row);
      targets.push(sequence.tokens[t + 1] as number);
      inverse.push(1 / (sequence.temperature === 0 ? 1 : sequence.temperature));
    }
  });
  starts[indices.length] = row;
  const count = predicting.length;
  const batch = {
    indices,
    rows,
    sequences: indices.length,
    tokens,
    positions,
    starts,
    predicting: kernels.allocateIntegers(count),
    targets: kernels.allocateIntegers(count),
    inverseTemperature: kernels.allocate(count),
  };
  batch.predicting.set(predicting);
  batch.targets.set(targets);
  batch.inverseTemperature.set(inverse);
  return batch;
}
