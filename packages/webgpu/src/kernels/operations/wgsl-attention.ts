/**
 * Causal attention, in blocks of queries and tiles of keys. A cached row has the bits of the same row in a batch: both
 * run the same shader, which finds keys and values in `qkv`, or in a cache [places, kvHeads headDim].
 */
import type { Heads } from '@drmas/engine/kernels';
import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import type { DeviceFloats } from '../device-memory.js';
import type { ScratchMemory } from '../scratch-memory.js';
import { numberShader, perNumber, type WorkgroupCounts } from '../shader.js';
import { backwardOfKeys, backwardOfQueries } from './wgsl-attention-backward.js';
import { attend, backwardLines, blockOf, CACHED_SPAN, forwardLines } from './wgsl-attention-shaders.js';
import { copyWithin } from './wgsl-memory.js';
import { TURN } from './wgsl-streams.js';

type AttentionKernels = Pick<
  DeviceKernels,
  'attention' | 'attentionBackward' | 'cacheSlotSize' | 'attentionCached' | 'cacheCopy'
> &
  Pick<NonNullable<DeviceKernels['fused']>, 'ropeAttentionCached'>;

export function attentionKernels(queue: CommandQueue, scratchMemory: ScratchMemory): AttentionKernels {
  const attendCached = (given: Omit<Parameters<DeviceKernels['attentionCached']>[0], 'alike'>): void => {
    const { out, keys, values, qkv, slots, positions, rows, capacity, heads: shape } = given;
    const { heads, kvHeads, headDim, window = 0 } = shape;
    const { rowsOfBlock: most, headsOfBlock, chunks } = blockOf(forwardLines(headDim), shape);
    const rowsOfBlock = Math.min(most, 1 + Math.floor(rows / APART));
    const [sums, starts] = [scratchMemory.take('sums of rows', rows * heads), scratchMemory.take('no starts', 1)];
    queue.run(
      attend(headDim),
      [rows, heads, kvHeads, 0, rowsOfBlock, headsOfBlock, chunks, capacity, window, headDim ** -0.5, 0],
      [out, sums, qkv, keys, values, starts, slots, positions],
      [Math.ceil(rows / rowsOfBlock), kvHeads * chunks],
    );
  };
  return {
    attention: ({ out, logSumExp, qkv, starts, sequences, heads: shape }) => {
      const { heads, kvHeads, headDim, window = 0 } = shape;
      const rows = rowsIn(qkv, out, shape);
      if (sequences === 0) return;
      // The shader also binds the memories of a cache; it does not read them here.
      const [keys, values, slots, positions] = UNUSED.map((purpose) => scratchMemory.take(purpose, 1)) as Four;
      const { rowsOfBlock, headsOfBlock, chunks } = blockOf(forwardLines(headDim), shape);
      queue.run(
        attend(headDim),
        [rows, heads, kvHeads, sequences, rowsOfBlock, headsOfBlock, chunks, 0, window, headDim ** -0.5, 0],
        [out, logSumExp, qkv, keys, values, starts, slots, positions],
        [Math.ceil(rows / rowsOfBlock), kvHeads * chunks],
      );
    },
    attentionBackward: ({ dQkv, dOut, out, logSumExp, qkv, starts, sequences, heads: shape }) => {
      const { heads, kvHeads, headDim, window = 0 } = shape;
      const rows = rowsIn(qkv, out, shape);
      if (sequences === 0) return;
      const memories = [dQkv, dOut, logSumExp, scratchMemory.take('means', rows * heads), qkv, starts];
      const lines = backwardLines(headDim);
      const { rowsOfBlock, headsOfBlock, chunks } = blockOf(lines, shape);
      const numbersOf = (...block: readonly [number, number, number]) => [
        ...[rows, heads, kvHeads, sequences, ...block, window, headDim ** -0.5, 0],
      ];
      queue.run(
        backwardOfQueries(headDim),
        numbersOf(rowsOfBlock, headsOfBlock, chunks),
        [...memories, out],
        [Math.ceil(rows / rowsOfBlock), kvHeads * chunks],
      );
      const groups: WorkgroupCounts = [Math.ceil(rows / lines), kvHeads];
      queue.run(backwardOfKeys(headDim), numbersOf(lines, 1, 1), memories, groups);
    },
    cacheSlotSize: ({ capacity, heads: { kvHeads, headDim } }) => capacity * kvHeads * headDim,
    attentionCached: ({ out, keys, values, qkv, slots, positions, rows, capacity, heads: shape }) => {
      const { heads, kvHeads, headDim } = shape;
      const width = kvHeads * headDim;
      const numbers = [rows, width, strideOf(shape), heads * headDim, capacity];
      queue.run(store, numbers, [keys, values, qkv, slots, positions], perNumber(rows * width));
      attendCached({ out, keys, values, qkv, slots, positions, rows, capacity, heads: shape });
    },
    ropeAttentionCached: ({ out, keys, values, qkv, table, slots, positions, rows, capacity, heads: shape }) => {
      const { heads, kvHeads, headDim } = shape;
      const half = headDim / 2;
      const memories = [keys, values, qkv, table, slots, positions];
      queue.run(
        turnAndStore,
        [rows, heads, kvHeads, half, capacity],
        memories,
        perNumber(rows * (strideOf(shape) / 2)),
      );
      attendCached({ out, keys, values, qkv, slots, positions, rows, capacity, heads: shape });
    },
    cacheCopy: ({ keys, values, from, to, length, capacity, heads: { kvHeads, headDim } }) => {
      const slot = capacity * kvHeads * headDim;
      const count = length * kvHeads * headDim;
      for (const memory of [keys, values])
        queue.run(copyWithin, [count, to * slot, from * slot], [memory], perNumber(count));
    },
  };
}

const strideOf = ({ heads, kvHeads, headDim }: Heads) => (heads + 2 * kvHeads) * headDim;

/**
 * Fewer rows of a cache than this are likely to be a tick's, of as many slots, and have a group each. Of more, some
 * have a slot in common, and groups that have several rows read its keys once for them.
 */
const APART = 64;

/** The most rows that the memories hold. Only the device knows the actual number, from `starts`. */
const rowsIn = (qkv: DeviceFloats, out: DeviceFloats, shape: Heads) =>
  Math.min(Math.floor(qkv.length / strideOf(shape)), Math.floor(out.length / (shape.heads * shape.headDim)));

/** Memories that a batch has nothing to give for. */
const UNUSED = ['no keys', 'no values', 'no slots', 'no positions'];
type Four = [DeviceFloats, DeviceFloats, DeviceFloats, DeviceFloats];

/** Puts the key and value of a row in their place. */
const store = numberShader({
  name: 'keys and values',
  numbers: ['rows', 'width', 'stride', 'column', 'capacity'],
  memories: ['keys', 'values', 'qkv', 'slots: i32', 'positions: i32'],
  declare: CACHED_SPAN,
  count: 'p.rows * p.width',
  body: `let row = e / p.width; let i = e % p.width; let span = span_in_cache(row);
  let to = (span.x + span.y - 1u) * p.width + i;
  let at = row * p.stride + p.column + i; keys[to] = qkv[at]; values[to] = qkv[at + p.width];`,
});
/** Turns pairs of queries and of keys; stores the turned keys and the values in the cache. */
const turnAndStore = numberShader({
  name: 'rope, keys and values',
  numbers: ['rows', 'heads', 'kv_heads', 'half', 'capacity'],
  memories: ['keys', 'values', 'qkv', 'table', 'slots: i32', 'positions: i32'],
  declare: `${CACHED_SPAN}\n${TURN}`,
  count: 'p.rows * (p.heads + 2u * p.kv_heads) * p.half',
  body: `let i = e % p.half; let line = e / p.half; let heads = p.heads + 2u * p.kv_heads;
  let row = line / heads; let head = line % heads; let at = line * 2u * p.half + i;
  var pair = vec2f(qkv[at], qkv[at + p.half]);
  if (head < p.heads + p.kv_heads) {
    let angle = u32(positions[row]) * 2u * p.half + i; pair = turn(pair, table[angle], table[angle + p.half]);
  }
  if (head < p.heads) { qkv[at] = pair.x; qkv[at + p.half] = pair.y; return; }
  let span = span_in_cache(row);
  let to = ((span.x + span.y - 1u) * p.kv_heads + (head - p.heads) % p.kv_heads) * 2u * p.half + i;
  if (head < p.heads + p.kv_heads) { keys[to] = pair.x; keys[to + p.half] = pair.y; return; }
  values[to] = pair.x; values[to + p.half] = pair.y;`,
});
