import { scaleOfScores } from '../../contract/sampling.js';
import { ArgumentError } from '../../errors.js';
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
 * nothing and gets no row. In a tree, sequences that begin alike share the rows of their common tokens.
 */
export interface PackedBatch {
  /** The positions of the sequences in the caller's list. */
  readonly indices: readonly number[]; // [S]
  readonly rows: number; // R
  readonly sequences: number; // S
  readonly tokens: Integers; // [R]
  readonly positions: Integers; // [R]
  /** The row of the token before a row's in its sequence; the row itself if that is the first one. */
  readonly previous: Integers; // [R]
  /** The first row of each sequence, and the number of rows. Attention reads `branches` instead if there are some. */
  readonly starts: Integers; // [S + 1]
  /** How the sequences of a tree attend; undefined if no two sequences share a row. */
  readonly branches: readonly Branches[] | undefined;
  /** The rows whose next token is predicted; `targets` are those tokens. */
  readonly predicting: Integers; // [N]
  readonly targets: Integers; // [N]
  readonly inverseTemperature: Floats; // [N]
}

/**
 * Some sequences of a tree, for attention: it reads them one after another with all their rows, E in all, and gives
 * back the N rows that no earlier sequence has.
 */
export interface Branches {
  readonly sequences: number; // B
  readonly starts: Integers; // [B + 1], places among the E rows
  /** The batch's row at each place. */
  readonly gathered: Integers; // [E]
  /** The first of the N rows in the batch; they are neighbours. */
  readonly first: number;
  /** The place of each of the N rows. */
  readonly places: Integers; // [N]
}

export interface Packing {
  readonly context: number;
  readonly maxRows: number;
  /** True packs trees: sequences that begin alike come one after another and share rows. */
  readonly tree: boolean;
}

/** A sequence's place in a batch, with the number of its first rows that the sequence before it has as well. */
interface Member {
  readonly index: number;
  readonly shared: number;
}

interface BatchMembers {
  readonly members: readonly Member[];
  readonly rows: number;
}

/** The most rows that a call of attention reads in a tree, so that its copies of them stay small. */
const GATHERED_ROWS = 1024;

/**
 * Packs sequences into batches of at most `maxRows` rows (a longer sequence is a batch by itself), one after the other:
 * in their order, or in the order of their tokens for trees. If a tree's first sequence is long, sequences that share
 * its rows may add a quarter of its rows. The arena is reset before each batch, so a batch is valid until the next one
 * is requested.
 * @throws ArgumentError when a sequence does not fit the context, before the first batch
 */
export function* packBatches(arena: Arena, sequences: readonly Sequence[], packing: Packing): Generator<PackedBatch> {
  for (const group of groupsOf(sequences, packing)) {
    arena.reset();
    yield packBatch(arena, sequences, group);
  }
}

const rowsOf = ({ tokens }: Sequence) => tokens.length - 1;

/** @throws ArgumentError when a sequence does not fit the context, or its first token is to be predicted */
export function requireSequences(sequences: readonly Pick<Sequence, 'tokens' | 'mask'>[], context: number): void {
  for (const { tokens, mask } of sequences) {
    if (tokens.length - 1 > context)
      throw new ArgumentError(`a sequence of ${tokens.length} tokens does not fit a context of ${context}`);
    if (mask[0] === 1) throw new ArgumentError('the first token of a sequence cannot be predicted: its mask must be 0');
  }
}

function groupsOf(sequences: readonly Sequence[], { context, maxRows, tree }: Packing): BatchMembers[] {
  requireSequences(sequences, context);
  const groups: BatchMembers[] = [];
  let members: Member[] = [];
  let [rows, most] = [0, maxRows];
  const flush = () => {
    if (members.length > 0) groups.push({ members, rows });
    members = [];
    rows = 0;
  };
  for (const index of tree ? inTokenOrder(sequences) : sequences.keys()) {
    const sequence = sequences[index] as Sequence;
    const needed = rowsOf(sequence);
    if (needed < 1) continue;
    const before = members.at(-1);
    let shared = tree && before !== undefined ? sharedRows(sequences[before.index] as Sequence, sequence) : 0;
    if (rows + needed - shared > most) {
      flush();
      shared = 0;
    }
    if (members.length === 0) most = tree ? mostTreeRows(maxRows, needed) : maxRows;
    members.push({ index, shared });
    rows += needed - shared;
  }
  flush();
  return groups;
}

/** The most rows of a tree whose first sequence has `longest` rows. */
export const mostTreeRows = (maxRows: number, longest: number): number =>
  Math.max(maxRows, longest + Math.ceil(longest / 4));

/** The positions of sequences in the order of their tokens: those that begin alike are neighbours. */
function inTokenOrder(sequences: readonly Sequence[]): number[] {
  const order = (a: number, b: number) => {
    const [left, right] = [(sequences[a] as Sequence).tokens, (sequences[b] as Sequence).tokens];
    const t = commonLength(left, right);
    return (left[t] ?? -1) - (right[t] ?? -1) || a - b;
  };
  return [...sequences.keys()].sort(order);
}

const sharedRows = (a: Sequence, b: Sequence) => Math.min(commonLength(a.tokens, b.tokens), rowsOf(a), rowsOf(b));

function commonLength(a: Int32Array, b: Int32Array): number {
  const limit = Math.min(a.length, b.length);
  let n = 0;
  while (n < limit && a[n] === b[n]) n++;
  return n;
}

function packBatch(arena: Arena, sequences: readonly Sequence[], { members, rows }: BatchMembers): PackedBatch {
  const [tokens, positions, previous] = [new Int32Array(rows), new Int32Array(rows), new Int32Array(rows)];
  const starts = new Int32Array(members.length + 1);
  const [predicting, targets, inverse]: [number[], number[], number[]] = [[], [], []];
  const paths: Int32Array[] = []; // each sequence's rows in the batch
  let row = 0;
  members.forEach(({ index, shared }, s) => {
    const { tokens: read, mask, temperature } = sequences[index] as Sequence;
    const path = new Int32Array(read.length - 1);
    if (shared > 0) path.set((paths[s - 1] as Int32Array).subarray(0, shared));
    starts[s] = row;
    for (let t = shared; t < path.length; t++, row++) {
      path[t] = row;
      tokens[row] = read[t] as number;
      positions[row] = t;
      previous[row] = path[Math.max(0, t - 1)] as number;
    }
    paths.push(path);
    path.forEach((at, t) => {
      if (mask[t + 1] !== 1) return;
      predicting.push(at);
      targets.push(read[t + 1] as number);
      inverse.push(scaleOfScores(temperature));
    });
  });
  starts[members.length] = row;
  const isTree = members.some(({ shared }) => shared > 0);
  const written = arena.takeWritten([
    tokens,
    positions,
    previous,
    starts,
    Int32Array.from(predicting),
    Int32Array.from(targets),
    Float32Array.from(inverse),
  ]);
  return {
    indices: members.map(({ index }) => index),
    rows,
    sequences: members.length,
    tokens: written[0],
    positions: written[1],
    previous: written[2],
    starts: written[3],
    branches: isTree ? branchesOf(arena, members, paths) : undefined,
    predicting: written[4],
    targets: written[5],
    inverseTemperature: written[6],
  };
}

function branchesOf(arena: Arena, members: readonly Member[], paths: readonly Int32Array[]): Branches[] {
  const calls: { from: number; to: number }[] = [];
  let gathered = 0;
  paths.forEach(({ length }, s) => {
    const last = calls.at(-1);
    if (last === undefined || gathered + length > GATHERED_ROWS) {
      calls.push({ from: s, to: s + 1 });
      gathered = length;
    } else {
      last.to = s + 1;
      gathered += length;
    }
  });
  let first = 0;
  return calls.map(({ from, to }) => {
    const some = paths.slice(from, to);
    const starts = [0];
    const places: number[] = [];
    some.forEach((path, s) => {
      const start = starts[s] as number;
      for (let t = (members[from + s] as Member).shared; t < path.length; t++) places.push(start + t);
      starts.push(start + path.length);
    });
    const rows = Int32Array.from(some.flatMap((path) => [...path]));
    const [ofStarts, ofRows, ofPlaces] = arena.takeWritten([Int32Array.from(starts), rows, Int32Array.from(places)]);
    const branch = { sequences: some.length, starts: ofStarts, gathered: ofRows, first, places: ofPlaces };
    first += places.length;
    return branch;
  });
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

/** Unpacks one number for each predicted token, [N], into rows [T]. */
export function unpackPredicted(
  { indices }: Pick<PackedBatch, 'indices'>,
  sequences: readonly Sequence[],
  values: Float32Array,
  rows: readonly Float32Array[],
): void {
  let n = 0;
  indices.forEach((index, s) => {
    const { mask } = sequences[index] as Sequence;
    const row = rows[s] as Float32Array;
    for (let t = 1; t < mask.length; t++) if (mask[t] === 1) row[t] = values[n++] as number;
  });
}
