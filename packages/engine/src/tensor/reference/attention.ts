import type { Heads } from '../kernel-arguments.js';
import type { HostKernels } from '../kernels.js';

/** One head's keys or values in a buffer: position t begins at `at + t · stride`. */
interface Lane {
  readonly data: Float32Array;
  readonly at: number;
  readonly stride: number;
}

function dot(a: Float32Array, at: number, b: Float32Array, bt: number, length: number): number {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += (a[at + i] as number) * (b[bt + i] as number);
  return sum;
}

/**
 * One query of one head attends to the positions of its lanes from `first` to `length` - 1: writes
 * out[to..to + headDim) and returns the log-sum-exp of its scaled scores. Both kinds of attention come here, so they
 * give the same bits.
 */
function attendRow(
  scores: Float64Array, // scratch, [>= length]
  out: Float32Array,
  to: number,
  query: Float32Array,
  from: number,
  keys: Lane,
  values: Lane,
  first: number,
  length: number,
  headDim: number,
): number {
  const scale = 1 / Math.sqrt(headDim);
  let max = Number.NEGATIVE_INFINITY;
  for (let t = first; t < length; t++) {
    const score = dot(query, from, keys.data, keys.at + t * keys.stride, headDim) * scale;
    scores[t] = score;
    if (score > max) max = score;
  }
  let sum = 0;
  for (let t = first; t < length; t++) {
    const weight = Math.exp((scores[t] as number) - max);
    scores[t] = weight;
    sum += weight;
  }
  // headDim is even (rope splits it in halves): two sums a pass keep the processor busy.
  for (let d = 0; d < headDim; d += 2) {
    let a = 0;
    let b = 0;
    for (let t = first, at = values.at + d + first * values.stride; t < length; t++, at += values.stride) {
      const weight = scores[t] as number;
      a += weight * (values.data[at] as number);
      b += weight * (values.data[at + 1] as number);
    }
    out[to + d] = a / sum;
    out[to + d + 1] = b / sum;
  }
  return max + Math.log(sum);
}

export const attention: HostKernels['attention'] = ({ out, logSumExp, qkv, starts, sequences, heads: shape }) => {
  const { heads, kvHeads, headDim } = shape;
  const stride = (heads + 2 * kvHeads) * headDim;
  const scores = new Float64Array(longest(starts, sequences));
  for (let s = 0; s < sequences; s++) {
    const start = starts[s] as number;
    const end = starts[s + 1] as number;
    for (let head = 0; head < heads; head++) {
      const key = start * stride + (heads + kvHeadOf(head, shape)) * headDim;
      const keys = { data: qkv, at: key, stride };
      const values = { data: qkv, at: key + kvHeads * headDim, stride };
      for (let row = start; row < end; row++) {
        const to = row * heads + head;
        const from = row * stride + head * headDim;
        const length = row - start + 1;
        const first = firstSeen(length - 1, shape);
        logSumExp[to] = attendRow(scores, out, to * headDim, qkv, from, keys, values, first, length, headDim);
      }
    }
  }
};

/** The first position that a query sees. */
const firstSeen = (position: number, { window = 0 }: Heads) => (window > 0 ? Math.max(0, position + 1 - window) : 0);

function longest(starts: Int32Array, sequences: number): number {
  let length = 0;
  for (let s = 0; s < sequences; s++) length = Math.max(length, (starts[s + 1] as number) - (starts[s] as number));
  return length;
}

/** Neighbouring query heads share a key-value head. */
const kvHeadOf = (head: number, { heads, kvHeads }: Heads) => Math.floor((head * kvHeads) / heads);

/**
 * Per query q at row t and key j <= t that it sees, with P = exp(score − logSumExp): dV_j += P dO;
 * dS = P (dO·V_j − dO·O) scale; dQ += dS K_j; dK_j += dS Q. Gradients of keys and values gather over heads and rows in
 * double precision.
 */
export const attentionBackward: HostKernels['attentionBackward'] = ({
  dQkv,
  dOut,
  out,
  logSumExp,
  qkv,
  starts,
  sequences,
  heads: shape,
}) => {
  const { heads, kvHeads, headDim } = shape;
  const stride = (heads + 2 * kvHeads) * headDim;
  const scale = 1 / Math.sqrt(headDim);
  const capacity = longest(starts, sequences) * headDim;
  const dKeys = new Float64Array(capacity);
  const dValues = new Float64Array(capacity);
  const dQuery = new Float64Array(headDim);
  for (let s = 0; s < sequences; s++) {
    const start = starts[s] as number;
    const length = (starts[s + 1] as number) - start;
    for (let kvHead = 0; kvHead < kvHeads; kvHead++) {
      const key = start * stride + (heads + kvHead) * headDim;
      const value = key + kvHeads * headDim;
      dKeys.fill(0);
      dValues.fill(0);
      for (let head = 0; head < heads; head++) {
        if (kvHeadOf(head, shape) !== kvHead) continue;
        for (let t = 0; t < length; t++) {
          const query = (start + t) * stride + head * headDim;
          const row = (start + t) * heads + head;
          const change = row * headDim;
          const weighted = dot(dOut, change, out, change, headDim);
          dQuery.fill(0);
          for (let j = firstSeen(t, shape); j <= t; j++) {
            const score = dot(qkv, query, qkv, key + j * stride, headDim) * scale;
            const p = Math.exp(score - (logSumExp[row] as number));
            const dScore = p * (dot(dOut, change, qkv, value + j * stride, headDim) - weighted) * scale;
            for (let d = 0; d < headDim; d++) {
              const at = j * headDim + d;
              dValues[at] = (dValues[at] as number) + p * (dOut[change + d] as number);
              dKeys[at] = (dKeys[at] as number) + dScore * (qkv[query + d] as number);
              dQuery[d] = (dQuery[d] as number) + dScore * (qkv[key + j * stride + d] as number);
            }
          }
          dQkv.set(dQuery, query);
        }
      }
      for (let j = 0; j < length; j++) {
        for (let d = 0; d < headDim; d++) {
          dQkv[key + j * stride + d] = dKeys[j * headDim + d] as number;
          dQkv[value + j * stride + d] = dValues[j * headDim + d] as number;
        }
      }
    }
  }
};

// ---- the cache: a slot is [capacity, kvHeads, headDim] -------------------------------------------------------------

export const cacheSlotSize: HostKernels['cacheSlotSize'] = ({ capacity, heads: { kvHeads, headDim } }) =>
  capacity * kvHeads * headDim;

export const attentionCached: HostKernels['attentionCached'] = ({
  out,
  keys,
  values,
  qkv,
  slots,
  positions,
  rows,
  capacity,
  heads: shape,
}) => {
  const { heads, kvHeads, headDim } = shape;
  const queryWidth = heads * headDim;
  const keyWidth = kvHeads * headDim;
  const stride = queryWidth + 2 * keyWidth;
  const slotSize = cacheSlotSize({ capacity, heads: shape });
  let furthest = 0;
  for (let row = 0; row < rows; row++) {
    const position = positions[row] as number;
    const to = (slots[row] as number) * slotSize + position * keyWidth;
    const from = row * stride + queryWidth;
    for (let i = 0; i < keyWidth; i++) {
      keys[to + i] = qkv[from + i] as number;
      values[to + i] = qkv[from + keyWidth + i] as number;
    }
    furthest = Math.max(furthest, position);
  }
  const scores = new Float64Array(furthest + 1);
  for (let row = 0; row < rows; row++) {
    const length = (positions[row] as number) + 1;
    for (let head = 0; head < heads; head++) {
      const at = (slots[row] as number) * slotSize + kvHeadOf(head, shape) * headDim;
      const keyLane = { data: keys, at, stride: keyWidth };
      const valueLane = { data: values, at, stride: keyWidth };
      const from = row * stride + head * headDim;
      const to = row * queryWidth + head * headDim;
      attendRow(scores, out, to, qkv, from, keyLane, valueLane, firstSeen(length - 1, shape), length, headDim);
    }
  }
};

export const cacheCopy: HostKernels['cacheCopy'] = ({ keys, values, from, to, length, capacity, heads }) => {
  const slotSize = cacheSlotSize({ capacity, heads });
  const end = from * slotSize + length * heads.kvHeads * heads.headDim;
  keys.copyWithin(to * slotSize, from * slotSize, end);
  values.copyWithin(to * slotSize, from * slotSize, end);
};
