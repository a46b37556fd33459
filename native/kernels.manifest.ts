/**
 * Every kernel, declared once. `npm run generate` writes from it what would otherwise be written by hand in six places:
 * the C++ table of an instruction set, the checks of arguments of the native addon and of the WebAssembly module, the
 * program that runs every kernel under the thread sanitizer and on ARM, the one that compares implementations with each
 * other, and the table of docs/engine.md. The compiler holds the arguments here against src/tensor/kernels.ts, where their
 * meaning is documented.
 *
 * An argument is `name: kind`:
 *
 * | kind | what is passed |
 * |---|---|
 * | `f32[n]`, `i32[n]` | a buffer of at least n numbers |
 * | `i32[n] < m` | the first n lie in [0, m); with `>= 0` they are at least 0 |
 * | `offsets[n]` | n + 1 integers, the first at least 0, which never fall |
 * | `weights[n]` | a buffer in float32 or in bfloat16; several of one kernel are of one kind |
 * | `size`, `size <= m` | a whole number of at least 0 |
 * | `f32`, `bool`, `heads`, `adamw` | a number, a flag, the structs `Heads` and `AdamWStep` |
 *
 * `const` buffers are only read. The layout of `private` ones differs between implementations. Lengths may use other
 * arguments, `+ - *`, `max(a, b)`, kernels that return a size, `qkvWidth(heads)` (a row of queries, keys and values),
 * `indexed(integers)` (one more than their largest) and `last(offsets)`.
 */
import type { AdamWStep, Heads, Kernels, WeightArray } from '../src/tensor/kernels.js';
import type { NativeKernels } from '../src/tensor/native/load.js';

export interface KernelEntry {
  /** The C++ implementation: a header of native/. */
  readonly header: string;
  /** The TypeScript implementation: a module of src/tensor/reference. */
  readonly reference?: string;
  /** What the kernel computes, in one line. */
  readonly computes: string;
  /** Which sums it takes, and in which order; nothing where it takes none. */
  readonly sums?: string;
  readonly parameters: readonly string[];
  /** `size <= n`: buffers are allocated by the result. `number`: any number. Nothing: the kernel returns nothing. */
  readonly returns?: `size <= ${string}` | 'number';
  /**
   * What the test programs pass, where it is not any number in [-1, 1) or any index: an expression of `r`, the position in
   * the buffer, of sizes, and of `noise()`, `below(n)` and `quotient(a, b)`.
   */
  readonly examples?: Readonly<Record<string, string>>;
  /** It measures the processor and is no part of `Kernels`. */
  readonly nativeOnly?: true;
}

type Access = '' | 'const ' | 'private ' | 'const private ';

/** How an argument of a TypeScript type is declared. */
type Declaration<T> = [T] extends [Float32Array]
  ? `${string}: ${Access}f32[${string}]`
  : [T] extends [Int32Array]
    ? `${string}: ${Access}${'i32' | 'offsets'}[${string}`
    : [T] extends [WeightArray]
      ? `${string}: ${Access}weights[${string}]`
      : [T] extends [boolean]
        ? `${string}: bool`
        : [T] extends [number]
          ? `${string}: ${'size' | `size <= ${string}` | 'f32'}`
          : [T] extends [Heads]
            ? `${string}: heads`
            : [T] extends [AdamWStep]
              ? `${string}: adamw`
              : never;

type Declarations<P extends readonly unknown[]> = { readonly [i in keyof P]: Declaration<P[i]> };

/** What is no kernel: properties, memory and the end of the thread pool. */
type Housekeeping = 'name' | 'isa' | 'threads' | 'allocate' | 'allocateBfloat16' | 'allocateIntegers' | 'dispose';
export type KernelName = Exclude<keyof NativeKernels, Housekeeping>;

type Manifest = {
  readonly [name in KernelName]: KernelEntry & {
    readonly parameters: Declarations<Parameters<NativeKernels[name]>>;
  } & (name extends keyof Kernels ? { readonly reference: string } : { readonly nativeOnly: true });
};

export const KERNELS = {
  // ---- linear layers -------------------------------------------------------------------------------------------------
  packedSize: {
    header: 'linear.h',
    reference: 'linear.ts',
    computes: 'the elements that `pack` writes',
    parameters: ['inputs: size', 'outputs: size'],
    returns: 'size <= inputs * (outputs + 31)',
  },
  pack: {
    header: 'linear.h',
    reference: 'linear.ts',
    computes: 'a matrix, or its transpose, as panels that `linear` reads in order',
    parameters: [
      'packed: private weights[packedSize(inputs, outputs)]',
      'weight: const weights[inputs * outputs]',
      'inputs: size',
      'outputs: size',
      'transpose: bool',
    ],
  },
  linear: {
    header: 'linear.h',
    reference: 'linear.ts',
    computes: 'out = x W, or out + x W',
    sums: 'for each output one lane runs over the inputs in order, one fused multiply-add after the other, whatever the tile, block or thread, and whether the weights are in float32 or bfloat16; with `accumulate` the finished sum is added once',
    parameters: [
      'out: f32[rows * outputs]',
      'x: const f32[rows * inputs]',
      'packed: const private weights[packedSize(inputs, outputs)]',
      'rows: size',
      'inputs: size',
      'outputs: size',
      'accumulate: bool',
    ],
  },
  linearWeightGradient: {
    header: 'linear.h',
    reference: 'linear.ts',
    computes: 'dWeight += xᵀ dOut',
    sums: 'for each weight one lane over the rows in order',
    parameters: [
      'dWeight: f32[inputs * outputs]',
      'x: const f32[rows * inputs]',
      'dOut: const f32[rows * outputs]',
      'rows: size',
      'inputs: size',
      'outputs: size',
    ],
  },

  // ---- normalisation -------------------------------------------------------------------------------------------------
  rmsNorm: {
    header: 'norm.h',
    reference: 'norm.ts',
    computes: 'x / sqrt(mean(x²) + epsilon) · gain, row by row',
    sums: 'over a row: 16 lanes in steps of 16, then a fixed tree over the lanes',
    parameters: [
      'out: f32[rows * width]',
      'inverse: f32[rows]',
      'x: const f32[rows * width]',
      'gain: const f32[width]',
      'rows: size',
      'width: size',
      'epsilon: f32',
    ],
  },
  rmsNormBackward: {
    header: 'norm.h',
    reference: 'norm.ts',
    computes: 'dx += s gain dOut − x s³ mean(gain dOut x) with s = inverse; dGain += Σ dOut x s',
    sums: 'over a row: 16 lanes, then the tree; of dGain: the rows in order',
    parameters: [
      'dx: f32[rows * width]',
      'dGain: f32[width]',
      'dOut: const f32[rows * width]',
      'x: const f32[rows * width]',
      'gain: const f32[width]',
      'inverse: const f32[rows]',
      'rows: size',
      'width: size',
    ],
    examples: { inverse: '1 + noise() / 2' },
  },
  headNorm: {
    header: 'norm.h',
    reference: 'norm.ts',
    computes: '`rmsNorm` of every query and every key, in place',
    sums: 'over a head: as over a row',
    parameters: [
      'qkv: f32[rows * qkvWidth(heads)]',
      'queryInverse: f32[rows * heads.heads]',
      'keyInverse: f32[rows * heads.kvHeads]',
      'queryGain: const f32[heads.headDim]',
      'keyGain: const f32[heads.headDim]',
      'rows: size',
      'heads: heads',
      'epsilon: f32',
    ],
    examples: { qkv: '2 * noise()' },
  },
  headNormBackward: {
    header: 'norm.h',
    reference: 'norm.ts',
    computes: 'the gradient of `headNorm`, in place; dQueryGain and dKeyGain are added to',
    sums: 'of the gains: the rows in order, and in each its heads',
    parameters: [
      'dQkv: f32[rows * qkvWidth(heads)]',
      'dQueryGain: f32[heads.headDim]',
      'dKeyGain: f32[heads.headDim]',
      'qkv: const f32[rows * qkvWidth(heads)]',
      'queryGain: const f32[heads.headDim]',
      'keyGain: const f32[heads.headDim]',
      'queryInverse: const f32[rows * heads.heads]',
      'keyInverse: const f32[rows * heads.kvHeads]',
      'rows: size',
      'heads: heads',
    ],
    examples: { queryInverse: '1 + noise() / 2', keyInverse: '1 + noise() / 2' },
  },

  // ---- attention -----------------------------------------------------------------------------------------------------
  rope: {
    header: 'elementwise.h',
    reference: 'rotary.ts',
    computes: 'every query and key turned by its position, or back, in place',
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
    header: 'attention.h',
    reference: 'attention.ts',
    computes: 'causal softmax attention over packed sequences, grouped heads',
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
    header: 'attention-backward.h',
    reference: 'attention.ts',
    computes: 'the gradient of `attention`; scores are computed again',
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
    header: 'cache.h',
    reference: 'attention.ts',
    computes: "the floats of one slot's keys, and of its values",
    parameters: ['capacity: size', 'heads: heads'],
    returns: 'size <= (capacity + 15) * heads.kvHeads * heads.headDim',
  },
  attentionCached: {
    header: 'cache.h',
    reference: 'attention.ts',
    computes: 'stores the keys and values of rows in the cache, then `attention` of each row to its slot',
    sums: 'as `attention`, with the same bits',
    parameters: [
      'out: f32[rows * heads.heads * heads.headDim]',
      'keys: private f32[indexed(slots) * cacheSlotSize(capacity, heads)]',
      'values: private f32[indexed(slots) * cacheSlotSize(capacity, heads)]',
      'qkv: const f32[rows * qkvWidth(heads)]',
      'slots: const i32[rows] >= 0',
      'positions: const i32[rows] < capacity',
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
    },
  },
  cacheCopy: {
    header: 'cache.h',
    reference: 'attention.ts',
    computes: 'the first positions of one slot, copied to another',
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

  // ---- feed-forward gate ---------------------------------------------------------------------------------------------
  swiglu: {
    header: 'elementwise.h',
    reference: 'gate.ts',
    computes: 'silu(gate) · up',
    parameters: [
      'out: f32[rows * feedForward]',
      'gateUp: const f32[rows * 2 * feedForward]',
      'rows: size',
      'feedForward: size',
    ],
    examples: { gateUp: '5 * noise()' },
  },
  swigluBackward: {
    header: 'elementwise.h',
    reference: 'gate.ts',
    computes: 'the gradient of `swiglu`',
    parameters: [
      'dGateUp: f32[rows * 2 * feedForward]',
      'dOut: const f32[rows * feedForward]',
      'gateUp: const f32[rows * 2 * feedForward]',
      'rows: size',
      'feedForward: size',
    ],
    examples: { gateUp: '5 * noise()' },
  },

  // ---- embedding -----------------------------------------------------------------------------------------------------
  embed: {
    header: 'elementwise.h',
    reference: 'embedding.ts',
    computes: 'out = table[token], row by row',
    parameters: [
      'out: f32[rows * width]',
      'table: const weights[indexed(tokens) * width]',
      'tokens: const i32[rows] >= 0',
      'rows: size',
      'width: size',
    ],
    examples: { tokens: 'below(vocabSize)' },
  },
  embedBackward: {
    header: 'elementwise.h',
    reference: 'embedding.ts',
    computes: 'dTable[token] += dOut',
    sums: 'the rows in order; threads share the columns',
    parameters: [
      'dTable: f32[indexed(tokens) * width]',
      'dOut: const f32[rows * width]',
      'tokens: const i32[rows] >= 0',
      'rows: size',
      'width: size',
    ],
    examples: { tokens: 'below(vocabSize)' },
  },

  // ---- output head ---------------------------------------------------------------------------------------------------
  tokenLogprobs: {
    header: 'head.h',
    reference: 'head.ts',
    computes: 'log-prob of the target, log-sum-exp and entropy of each row of logits at its temperature',
    sums: 'over the vocabulary: 16 lanes, then the tree',
    parameters: [
      'logprobs: f32[rows]',
      'logSumExp: f32[rows]',
      'entropy: f32[rows]',
      'logits: const f32[rows * vocabSize]',
      'targets: const i32[rows] < vocabSize',
      'inverseTemperature: const f32[rows]',
      'rows: size',
      'vocabSize: size',
    ],
    examples: { logits: '6 * noise()', inverseTemperature: '1 + noise() / 2' },
  },
  tokenLogprobsBackward: {
    header: 'head.h',
    reference: 'head.ts',
    computes: 'logits become their gradient under that of the log-probs',
    parameters: [
      'logits: f32[rows * vocabSize]',
      'dLogprobs: const f32[rows]',
      'logSumExp: const f32[rows]',
      'targets: const i32[rows] < vocabSize',
      'inverseTemperature: const f32[rows]',
      'rows: size',
      'vocabSize: size',
    ],
    examples: { logits: '6 * noise()', logSumExp: '9 + noise()', inverseTemperature: '1 + noise() / 2' },
  },
  tokenEntropyBackward: {
    header: 'head.h',
    reference: 'head.ts',
    computes: 'the same where the entropies have a gradient too',
    parameters: [
      'logits: f32[rows * vocabSize]',
      'dLogprobs: const f32[rows]',
      'dEntropy: const f32[rows]',
      'logSumExp: const f32[rows]',
      'entropy: const f32[rows]',
      'targets: const i32[rows] < vocabSize',
      'inverseTemperature: const f32[rows]',
      'rows: size',
      'vocabSize: size',
    ],
    examples: {
      logits: '6 * noise()',
      logSumExp: '9 + noise()',
      entropy: '2 + noise()',
      inverseTemperature: '1 + noise() / 2',
    },
  },
  sampleTokens: {
    header: 'head.h',
    reference: 'head.ts',
    computes: 'one token a row: the cumulative distribution inverted at a uniform number, after top-k and top-p',
    sums: 'log-probs: as `tokenLogprobs`, with the same bits; cumulative distribution: in double precision, in order of id',
    parameters: [
      'tokens: i32[rows]',
      'logprobs: f32[rows]',
      'logits: const f32[rows * vocabSize]',
      'uniforms: const f32[rows]',
      'inverseTemperature: const f32[rows]',
      'topK: const i32[rows]',
      'topP: const f32[rows]',
      'rows: size',
      'vocabSize: size',
    ],
    examples: {
      logits: '6 * noise()',
      uniforms: '(1 + noise()) / 2',
      inverseTemperature: 'r % 7 === 0 ? 0 : 1 + noise() / 2',
      topK: 'below(20)',
      topP: '0.95',
    },
  },

  // ---- optimiser -----------------------------------------------------------------------------------------------------
  sumOfSquares: {
    header: 'optimizer.h',
    reference: 'optimiser.ts',
    computes: 'Σ x²',
    sums: 'in double precision: 8 lanes over each of fixed chunks, chunks in order',
    parameters: ['x: const f32[length]', 'length: size'],
    returns: 'number',
  },
  add: {
    header: 'elementwise.h',
    reference: 'optimiser.ts',
    computes: 'out += x',
    parameters: ['out: f32[length]', 'x: const f32[length]', 'length: size'],
  },
  adamw: {
    header: 'optimizer.h',
    reference: 'optimiser.ts',
    computes: 'one step of AdamW on weights and both moments',
    parameters: [
      'weights: f32[length]',
      'gradient: const f32[length]',
      'firstMoment: f32[length]',
      'secondMoment: f32[length]',
      'length: size',
      'settings: adamw',
    ],
    examples: { secondMoment: '(1.5 + noise()) / 8' },
  },
  fmaPeak: {
    header: 'peak.h',
    nativeOnly: true,
    computes: 'multiply-adds on registers alone: what the processor can do at most',
    parameters: ['tasks: size'],
    returns: 'number',
  },
} as const satisfies Manifest;
