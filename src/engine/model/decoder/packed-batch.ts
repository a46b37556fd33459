import { ArgumentError } from '../../../base/errors.js';
import { scaleOfScores } from '../../contract/sampling.js';
import type { Arena } from '../../tensor/arena.js';
import type { Floats, Integers } from '../../tensor/memory.js';

/** A sequence to train on or to score: T tokens. The tokens with mask 1 are predicted. */
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
  /** The positions of the sequences in the caller's list. */
  readonly indices: readonly number[]; // [S]
  readonly rows: number; // R
  readonly sequences: number; // S
  readonly tokens: Integers; // [R]
  readonly positions: Integers; // [R]
  readonly starts: Integers; // [S + 1]
  /** The rows whose next token is predicted; `targets` are those tokens. */
  readonly predicting: Integers; // [N]
  readonly targets: Integers; // [N]
  readonly inverseTemperature: Floats; // [N]
}

/** The sequences of one batch. */
interface BatchMembers {
  readonly indices: readonly number[];
  readonly rows: number;
}

/**
 * Packs sequences in order into batches of at most `maxRows` rows (a longer sequence is a batch by itself), one after
 * the other. The arena is reset before each, so a batch is valid until the next one is requested.
 * @throws ArgumentError when a sequence does not fit the context, before the first batch
 */
export function* packBatches(
  arena: Arena,
  sequences: readonly Sequence[],
  context: number,
  maxRows: number,
): Generator<PackedBatch> {
  for (const group of groupsOf(sequences, context, maxRows)) {
    arena.reset();
    yield packBatch(arena, sequences, group);
  }
}

function groupsOf(sequences: readonly Sequence[], context: number, maxRows: number): BatchMembers[] {
  const groups: BatchMembers[] = [];
  let indices: number[] = [];
  let rows = 0;
  const flush = () => {
    if (indices.length > 0) groups.push({ indices, rows });
    indices = [];
    rows = 0;
  };
  sequences.forEach(({ tokens, mask }, index) => {
    const needed = tokens.length - 1;
    if (needed > context)
      throw new ArgumentError(`a sequence of ${tokens.length} tokens does not fit a context of ${context}`);
    if (mask[0] === 1) throw new ArgumentError('the first token of a sequence cannot be predicted: its mask must be 0');
    if (needed < 1) return;
    if (rows + needed > maxRows) flush();
    indices.push(index);
    rows += needed;
  });
  flush();
  return groups;
}

function packBatch(arena: Arena, sequences: readonly Sequence[], { indices, rows }: BatchMembers): PackedBatch {
  const [tokens, positions] = [new Int32Array(rows), new Int32Array(rows)];
  const starts = new Int32Array(indices.length + 1);
  const [predicting, targets, inverse] = [new Int32Array(rows), new Int32Array(rows), new Float32Array(rows)];
  let row = 0;
  let count = 0;
  indices.forEach((index, s) => {
    const sequence = sequences[index] as Sequence;
    starts[s] = row;
    for (let t = 0; t + 1 < sequence.tokens.length; t++, row++) {
      tokens[row] = sequence.tokens[t] as number;
      positions[row] = t;
      if (sequence.mask[t + 1] !== 1) continue;
      predicting[count] = row;
      targets[count] = sequence.tokens[t + 1] as number;
      inverse[count] = scaleOfScores(sequence.temperature);
      count++;
    }
  });
  starts[indices.length] = row;
  const written = arena.takeWritten([
    tokens,
    positions,
    starts,
    predicting.subarray(0, count),
    targets.subarray(0, count),
    inverse.subarray(0, count),
  ]);
  return {
    indices,
    rows,
    sequences: indices.length,
    tokens: written[0],
    positions: written[1],
    starts: written[2],
    predicting: written[3],
    targets: written[4],
    inverseTemperature: written[5],
  };
}

/** Packs rows [T] of a batch's sequences into one number for each predicted token: [N]. */
export function packPredicted<Row extends ArrayLike<number>, Packed extends Float32Array | Float64Array>(
  { indices }: Pick<PackedBatch, 'indices'>,
  sequences: readonly Sequence[],
  rows: readonly Row[],
  values: Packed,
): Packed {
  let n = 0;
  indices.forEach((index, s) => {
    const { mask } = sequences[index] as Sequence;
    const row = rows[s] as Row;
    for (let t = 1; t < mask.length; t++) if (mask[t] === 1) values[n++] = row[t] as number;
  });
  return values;
}

/** Unpacks one number for each predicted token, [N], into rows [T]. Returns the number of predicted tokens. */
export function unpackPredicted(
  { indices }: Pick<PackedBatch, 'indices'>,
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
