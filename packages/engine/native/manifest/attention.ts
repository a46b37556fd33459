import type { Entries } from './entry.js';

/** Attention: rotary embedding, over packed sequences, and through the cache. */
export const attentionKernels = {
  rope: {
    header: 'kernels/elementwise.h',
    reference: 'rotary.ts',
    computes: 'every query and key turned by its position, or back, in place',
    details:
      'Rotary position embedding (Su et al. 2021), half-split layout. For i < headDim / 2 the pair (a, b) = (head[i], head[i + headDim/2]) becomes (a·cos − b·sin, b·cos + a·sin), with cos = table[position, i] and sin = table[position, headDim/2 + i]. `inverse` rotates back, which is the backward pass.',
    parameters: [
      'qkv: f32[rows * qkvWidth(heads)]',
      'table: const f32[indexed(positions) * heads.headDim]',
      'positions: const i32[rows] >= 0',
      'rows: size',
      'heads: heads',
      'inverse: bool',
    ],
    examples: { positions: 'below(capacity)' },
  },
  attention: {
    header: 'kernels/attention.h',
    reference: 'attention.ts',
    computes: 'causal softmax attention over packed sequences, grouped heads',
    details:
      'The scale of scores is 1/sqrt(headDim). With `heads.window` a query sees only the last `window` positions up to its own. Rows of `qkv` hold queries, keys and values side by side. Sequence s is rows starts[s] to starts[s + 1] − 1. `logSumExp` of the scaled scores is for the backward pass. No rows × rows matrix is kept.',
    sums: 'scores: one lane a key, over headDim in order; exponentials: 16 lanes over blocks of 16 keys, which begin at absolute positions, then the tree; values: one lane a column, over the keys in order',
    parameters: [
      'out: f32[last(starts) * heads.heads * heads.headDim]',
      'logSumExp: f32[last(starts) * heads.heads]',
      'qkv: const f32[last(starts) * qkvWidth(heads)]',
      'starts: const offsets[sequences]',
      'sequences: size',
      'heads: heads',
    ],
    examples: { qkv: '2 * noise()' },
  },
  attentionBackward: {
    header: 'kernels/attention-backward.h',
    reference: 'attention.ts',
    computes: 'the gradient of `attention`; scores are computed again',
    details: '`dQkv` has the layout of `qkv` and is overwritten.',
    sums: 'gradients of queries: the keys in order; of keys and values: the heads in order, and in each the queries',
    parameters: [
      'dQkv: f32[last(starts) * qkvWidth(heads)]',
      'dOut: const f32[last(starts) * heads.heads * heads.headDim]',
      'out: const f32[last(starts) * heads.heads * heads.headDim]',
      'logSumExp: const f32[last(starts) * heads.heads]',
      'qkv: const f32[last(starts) * qkvWidth(heads)]',
      'starts: const offsets[sequences]',
      'sequences: size',
      'heads: heads',
    ],
    examples: { qkv: '2 * noise()', logSumExp: '4 + noise()' },
  },
  cacheSlotSize: {
    header: 'kernels/cache.h',
    reference: 'attention.ts',
    computes: "the floats of one slot's keys, and of its values",
    parameters: ['capacity: size', 'heads: heads'],
    returns: 'size <= (capacity + 15) * heads.kvHeads * heads.headDim',
  },
  attentionCached: {
    header: 'kernels/cache.h',
    reference: 'attention.ts',
    computes: 'stores the keys and values of rows in the cache, then `attention` of each row to its slot',
    details:
      'First every row’s key and value is stored at (slots[r], positions[r]). Then row r attends to positions 0 to positions[r] of its slot, or to the last `heads.window` of them. Serves prefill (many rows of one slot) and decoding (one row a slot). The keys and values at the first alike[r] positions of row r’s slot are the same as in row r − 1’s, so the kernel may read either. 0 is right for any row. The layout of `keys` and `values` is private.',
    sums: 'as `attention`, with the same bits',
    parameters: [
      'out: f32[rows * heads.heads * heads.headDim]',
      'keys: private f32[indexed(slots) * cacheSlotSize(capacity, heads)]',
      'values: private f32[indexed(slots) * cacheSlotSize(capacity, heads)]',
      'qkv: const f32[rows * qkvWidth(heads)]',
      'slots: const i32[rows] >= 0',
      'positions: const i32[rows] < capacity',
      'alike: const i32[rows] >= 0',
      'rows: size',
      'capacity: size',
      'heads: heads',
    ],
    // Whole sequences, since a slot that nothing was stored in holds other numbers wherever layouts differ.
    examples: {
      keys: '0',
      values: '0',
      qkv: '2 * noise()',
      slots: 'quotient(r, capacity)',
      positions: 'r % capacity',
      alike: '0',
    },
  },
  cacheCopy: {
    header: 'kernels/cache.h',
    reference: 'attention.ts',
    computes: 'the first positions of one slot, copied to another',
    details: 'Copies positions 0 to length − 1. Siblings of a group share the prefill of their prompt this way.',
    parameters: [
      'keys: private f32[(max(from, to) + 1) * cacheSlotSize(capacity, heads)]',
      'values: private f32[(max(from, to) + 1) * cacheSlotSize(capacity, heads)]',
      'from: size',
      'to: size',
      'length: size <= capacity',
      'capacity: size',
      'heads: heads',
    ],
    examples: { from: '0', to: '1', length: 'capacity - 1' },
  },
} as const satisfies Entries;

const convolution = { header: 'kernels/elementwise.h', reference: 'elementwise.ts' } as const;
/** The last parameters of the pass over packed sequences and of its gradient. */
const overRows = [
  'bcx: const f32[rows * 3 * width]',
  'weight: const f32[taps * width]',
  'previous: const i32[rows] < rows',
  'rows: size',
  'width: size',
  'taps: size',
] as const;
const overRowsExamples = { previous: 'quotient(r, 2)', taps: '3' } as const;

/** The short convolution of LFM2, which stands in attention's place: over packed sequences and through a cache. */
export const convolutionKernels = {
  convolution: {
    ...convolution,
    computes: 'C · (a causal convolution of B · x, each column by itself)',
    details:
      'Rows of `bcx` hold B, C and x side by side. previous[r] is the row of the token before row r’s in its sequence, or r itself if that is the first one. Several rows may have one predecessor. `weight` is [taps, width]; its last row belongs to a token itself. Tokens before a sequence count as 0.',
    sums: 'the taps, from the token itself backwards',
    parameters: ['out: f32[rows * width]', ...overRows],
    examples: overRowsExamples,
  },
  convolutionBackward: {
    ...convolution,
    computes: 'the gradient of `convolution`',
    details: '`dBcx` has the layout of `bcx` and is overwritten, `dWeight` is added to.',
    sums: 'the rows in order, in each the taps from the token itself backwards; threads share the columns',
    parameters: [
      'dBcx: f32[rows * 3 * width]',
      'dWeight: f32[taps * width]',
      'dOut: const f32[rows * width]',
      ...overRows,
    ],
    examples: overRowsExamples,
  },
  convolutionCached: {
    ...convolution,
    computes: 'stores B · x of rows in the cache, then `convolution` of each row over its slot',
    details:
      'First every row’s product is stored at (slots[r], positions[r]) of `products`, [slots, capacity, width]. Then row r reads positions[r] and the taps − 1 positions before it.',
    sums: 'as `convolution`, with the same bits',
    parameters: [
      'out: f32[rows * width]',
      'products: f32[indexed(slots) * capacity * width]',
      'bcx: const f32[rows * 3 * width]',
      'weight: const f32[taps * width]',
      'slots: const i32[rows] >= 0',
      'positions: const i32[rows] < capacity',
      'rows: size',
      'capacity: size',
      'width: size',
      'taps: size',
    ],
    examples: { products: '0', slots: 'quotient(r, capacity)', positions: 'r % capacity', taps: '3' },
  },
  convolutionCopy: {
    ...convolution,
    computes: 'the products of the first positions of one slot, copied to another',
    parameters: [
      'products: f32[(max(from, to) + 1) * capacity * width]',
      'from: size',
      'to: size',
      'length: size <= capacity',
      'capacity: size',
      'width: size',
    ],
    examples: { from: '0', to: '1', length: 'capacity - 1' },
  },
} as const satisfies Entries;
