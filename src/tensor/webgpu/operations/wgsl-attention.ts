/**
 * Causal attention. A thread has a query and goes over its keys one by one, so that neither tiles nor neighbouring
 * rows change a bit, and a cached row has the bits of the same row in a batch: both run the same shader, over keys and
 * values in memory of their own, [rows, kvHeads headDim]. A row's span [2] is the first of its keys and their number.
 */
import type { Heads } from '../../kernel-arguments.js';
import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import type { DeviceFloats, DeviceMemory } from '../device-memory.js';
import type { Rooms } from '../rooms.js';
import { numberShader, perNumber } from '../shader.js';
import { attend, backwardOfKeys, backwardOfQueries, THREADS } from './wgsl-attention-shaders.js';

type AttentionKernels = Pick<
  DeviceKernels,
  'attention' | 'attentionBackward' | 'cacheSlotSize' | 'attentionCached' | 'cacheCopy'
>;

export function attentionKernels(queue: CommandQueue, rooms: Rooms): AttentionKernels {
  const spansOf = (starts: DeviceMemory, sequences: number, rows: number) => {
    const [spans, ends] = [rooms.take('spans', 2 * rows), rooms.take('ends', rows)];
    queue.run(spansOfBatch, [rows, sequences], [spans, ends, starts], perNumber(rows));
    return { spans, ends };
  };

  const forward = (
    [out, logSumExp, qkv, keys, values, spans]: readonly DeviceFloats[] & { readonly length: 6 },
    rows: number,
    { heads, kvHeads, headDim }: Heads,
    rowsOfGroup: number,
  ) => {
    const numbers = [rows, heads, kvHeads, rowsOfGroup, headDim ** -0.5];
    const memories = [out, logSumExp, qkv, keys, values, spans] as DeviceFloats[];
    queue.run(attend(headDim), numbers, memories, [Math.ceil(rows / rowsOfGroup), heads]);
  };

  return {
    attention: (out, logSumExp, qkv, starts, sequences, shape) => {
      const { heads, kvHeads, headDim } = shape;
      const rows = rowsIn(qkv, out, shape);
      const width = kvHeads * headDim;
      const { spans } = spansOf(starts, sequences, rows);
      const [keys, values] = [rooms.take('keys', rows * width), rooms.take('values', rows * width)];
      const numbers = [rows, width, strideOf(shape), heads * headDim, 0];
      queue.run(store, numbers, [keys, values, qkv, spans], perNumber(rows * width));
      forward([out, logSumExp, qkv, keys, values, spans], rows, shape, THREADS);
    },
    attentionBackward: (dQkv, dOut, out, logSumExp, qkv, starts, sequences, shape) => {
      const { heads, kvHeads, headDim } = shape;
      const rows = rowsIn(qkv, out, shape);
      const { spans, ends } = spansOf(starts, sequences, rows);
      const means = rooms.take('means', rows * heads);
      queue.run(meanChange, [rows * heads, headDim], [means, dOut, out], perNumber(rows * heads));
      const numbers = [rows, heads, kvHeads, headDim ** -0.5];
      const memories = [dQkv, dOut, logSumExp, means, qkv];
      const groups = Math.ceil(rows / THREADS);
      queue.run(backwardOfQueries(headDim), numbers, [...memories, spans], [groups, heads]);
      queue.run(backwardOfKeys(headDim), numbers, [...memories, ends], [groups, kvHeads]);
    },
    cacheSlotSize: (capacity, { kvHeads, headDim }) => capacity * kvHeads * headDim,
    attentionCached: (out, keys, values, qkv, slots, positions, rows, capacity, shape) => {
      const { heads, kvHeads, headDim } = shape;
      const width = kvHeads * headDim;
      const spans = rooms.take('spans', 2 * rows);
      queue.run(spansOfCache, [rows, capacity], [spans, slots, positions], perNumber(rows));
      const numbers = [rows, width, strideOf(shape), heads * headDim, 1];
      queue.run(store, numbers, [keys, values, qkv, spans], perNumber(rows * width));
      forward([out, rooms.take('sums', rows * heads), qkv, keys, values, spans], rows, shape, 1);
    },
    cacheCopy: (keys, values, from, to, length, capacity, { kvHeads, headDim }) => {
      const slot = capacity * kvHeads * headDim;
      const count = length * kvHeads * headDim;
      for (const memory of [keys, values])
        queue.run(copyWithin, [count, to * slot, from * slot], [memory], perNumber(count));
    },
  };
}

const strideOf = ({ heads, kvHeads, headDim }: Heads) => (heads + 2 * kvHeads) * headDim;

/** As many rows as the memories hold: how many there are stands on the device, in `starts`. */
const rowsIn = (qkv: DeviceFloats, out: DeviceFloats, shape: Heads) =>
  Math.min(Math.floor(qkv.length / strideOf(shape)), Math.floor(out.length / (shape.heads * shape.headDim)));

/** Rows outside all sequences have no keys; `ends` says behind which row the queries that see a row's key end. */
const spansOfBatch = numberShader({
  name: 'spans of a batch',
  numbers: ['rows', 'sequences'],
  memories: ['spans: vec2u', 'ends: u32', 'starts: i32'],
  count: 'p.rows',
  body: `let first = u32(starts[0]); let end = u32(starts[p.sequences]);
  if (e < first || e >= end) { spans[e] = vec2u(select(end, first, e < first), 0u); ends[e] = 0u; return; }
  var s = 0u; while (e >= u32(starts[s + 1u])) { s++; }
  let start = u32(starts[s]); spans[e] = vec2u(start, e - start + 1u); ends[e] = u32(starts[s + 1u]);`,
});
const spansOfCache = numberShader({
  name: 'spans of a cache',
  numbers: ['rows', 'capacity'],
  memories: ['spans: vec2u', 'slots: i32', 'positions: i32'],
  count: 'p.rows',
  body: 'spans[e] = vec2u(u32(slots[e]) * p.capacity, u32(positions[e]) + 1u);',
});
/** Puts the key and value of a row in their place: that of the row, or in a cache the last of its span. */
const store = numberShader({
  name: 'keys and values',
  numbers: ['rows', 'width', 'stride', 'column', 'cached'],
  memories: ['keys', 'values', 'qkv', 'spans: vec2u'],
  count: 'p.rows * p.width',
  body: `let row = e / p.width; let i = e % p.width; let span = spans[row];
  let to = select(row, span.x + span.y - 1u, p.cached == 1u) * p.width + i;
  let at = row * p.stride + p.column + i; keys[to] = qkv[at]; values[to] = qkv[at + p.width];`,
});
const copyWithin = numberShader({
  name: 'copy within',
  numbers: ['count', 'to', 'source'],
  memories: ['x'],
  count: 'p.count',
  body: 'x[p.to + e] = x[p.source + e];',
});
/** The change of a row's softmax that all of its keys share: the dot product of its output and the gradient on that. */
const meanChange = numberShader({
  name: 'mean change',
  numbers: ['lines', 'width'],
  memories: ['mean', 'dOut', 'out'],
  count: 'p.lines',
  body: `var s = 0.0; for (var d = 0u; d < p.width; d++) { s += dOut[e * p.width + d] * out[e * p.width + d]; }
  mean[e] = s;`,
});
