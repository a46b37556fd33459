import type { FusedKernels } from './fused-kernels.js';
import type { AdamWStep, Heads } from './kernel-arguments.js';
import type { Floats, Halves, Integers } from './memory.js';
import type { MemoryKernels } from './memory-kernels.js';
import type { NarrowKernels } from './narrow-kernels.js';
import type { DeviceCounts } from './webgpu/device-counts.js';

/**
 * The engine's operations: one contract, four implementations (native C++, WebAssembly, plain TypeScript, WGSL on a
 * GPU), one contract suite (test/contracts/kernels.ts). `F`, `I` and `H` are what numbers in float32, int32 and
 * bfloat16 lie in, `Sum` what a sum that the host wants comes as.
 *
 * Promises that every implementation keeps:
 * - Row invariance. What is computed for a row depends on that row's inputs only: not on how many rows a call has,
 *   where the row stands among them, how they are packed or cached, or how many threads work. Sums over a row run in
 *   one fixed order.
 * - Determinism. Sums over rows (gradients of weights) run in one fixed order too, at any thread count.
 * - No hidden state: calls may come in any order, buffers are the caller's.
 *
 * All matrices are row-major. Buffers may be longer than needed; only the stated part is read or written. Unless a
 * parameter is documented as "added to", outputs are overwritten. Outputs must not overlap inputs unless stated.
 */
export interface KernelsOn<F, I, H, Sum> extends NarrowKernels<F, H>, MemoryKernels<F, I, H> {
  /**
   * Instruction set in use, for people: 'avx512', 'avx2', 'neon', 'portable', 'simd128', 'typescript', 'wgsl'; with
   * '-amx' behind it where products in bfloat16 are summed in tiles, and so have other bits.
   */
  readonly isa: string;
  readonly threads: number;

  /** A zeroed buffer this implementation can work on. Callers pass only buffers obtained here (or views of them). */
  allocate(length: number): F;
  allocateBfloat16(length: number): H;
  allocateIntegers(length: number): I;
  /** Stops the thread pool; the kernels must not be used afterwards. */
  dispose(): void;

  // ---- linear layers: weight [inputs, outputs], y = x W ------------------------------------------------------------

  /** Number of elements that `pack` writes for a matrix with these sizes. */
  packedSize(inputs: number, outputs: number): number;
  /**
   * Rearranges a matrix for `linear`. With `transpose` false, `weight` is [inputs, outputs]; with `transpose` true it
   * is stored as [outputs, inputs] and used as its transpose. The packed form is private to the implementation, and
   * of the matrix's kind.
   * @throws RangeError when one is in bfloat16 and the other is not.
   */
  pack<W extends F | H>(packed: W, weight: W, inputs: number, outputs: number, transpose: boolean): void;
  /** out [rows, outputs] = x [rows, inputs] W, or added to `out` (sum first, then one addition) when `accumulate`. */
  linear(out: F, x: F, packed: F | H, rows: number, inputs: number, outputs: number, accumulate: boolean): void;
  /** dWeight [inputs, outputs] is added to: + xᵀ [inputs, rows] dOut [rows, outputs]. */
  linearWeightGradient(dWeight: F, x: F, dOut: F, rows: number, inputs: number, outputs: number): void;

  // ---- normalisation (RMSNorm, Zhang & Sennrich 2019): y = x / sqrt(mean(x²) + epsilon) · gain ---------------------

  /** out [rows, width]; `inverse` [rows] receives 1 / sqrt(mean(x²) + epsilon) for the backward pass. */
  rmsNorm(out: F, inverse: F, x: F, gain: F, rows: number, width: number, epsilon: number): void;
  /** dx [rows, width] and dGain [width] are added to. */
  rmsNormBackward(dx: F, dGain: F, dOut: F, x: F, gain: F, inverse: F, rows: number, width: number): void;

  /**
   * The same over single heads: normalises, in place, every query and every key of qkv [rows, (heads + 2 kvHeads)
   * headDim], queries by `queryGain` [headDim], keys by `keyGain` [headDim]. queryInverse [rows, heads] and
   * keyInverse [rows, kvHeads] are for the backward pass.
   */
  headNorm(
    qkv: F,
    queryInverse: F,
    keyInverse: F,
    queryGain: F,
    keyGain: F,
    rows: number,
    heads: Heads,
    epsilon: number,
  ): void;
  /**
   * In place: in the queries and keys of each row of dQkv the gradient of what `headNorm` wrote becomes that of qkv,
   * its values before. dQueryGain and dKeyGain [headDim] are added to: the sum over rows, and in each over its heads,
   * in order.
   */
  headNormBackward(
    dQkv: F,
    dQueryGain: F,
    dKeyGain: F,
    qkv: F,
    queryGain: F,
    keyGain: F,
    queryInverse: F,
    keyInverse: F,
    rows: number,
    heads: Heads,
  ): void;

  // ---- rotary position embedding (Su et al. 2021), half-split layout -----------------------------------------------

  /**
   * Rotates, in place, every query and every key of qkv [rows, (heads + 2 kvHeads) headDim]. For i < headDim / 2 the
   * pair (a, b) = (head[i], head[i + headDim/2]) becomes (a·cos − b·sin, b·cos + a·sin), where cos and sin are
   * table[position, i] and table[position, headDim/2 + i] (`table` is [context, headDim]). `inverse` rotates back,
   * which is the backward pass.
   */
  rope(
    qkv: F,
    table: F,
    positions: I, // [rows]
    rows: number,
    heads: Heads,
    inverse: boolean,
  ): void;

  // ---- causal attention over packed sequences, grouped heads, scale 1/sqrt(headDim) --------------------------------

  /**
   * qkv [rows, (heads + 2 kvHeads) headDim]: queries, keys, values side by side. Sequence s is rows starts[s] to
   * starts[s + 1] - 1. out [rows, heads · headDim]; logSumExp [rows, heads] of the scaled scores, for the backward
   * pass. No rows × rows matrix is kept.
   */
  attention(
    out: F,
    logSumExp: F,
    qkv: F,
    starts: I, // [sequences + 1]
    sequences: number,
    heads: Heads,
  ): void;
  /** dQkv, laid out as qkv, is overwritten. */
  attentionBackward(dQkv: F, dOut: F, out: F, logSumExp: F, qkv: F, starts: I, sequences: number, heads: Heads): void;

  /** Floats that the keys (and, separately, the values) of one slot with room for `capacity` positions take. */
  cacheSlotSize(capacity: number, heads: Heads): number;
  /**
   * The same attention through a cache: first every row's key and value is stored at (slots[r], positions[r]), then
   * row r attends to positions 0..positions[r] of its slot. Serves prefill (many rows of one slot) and decoding (one
   * row a slot) and gives the bits that `attention` gives. `keys` and `values` hold slots of `cacheSlotSize`; the
   * layout is private.
   */
  attentionCached(
    out: F,
    keys: F,
    values: F,
    qkv: F,
    slots: I, // [rows]
    positions: I, // [rows]
    rows: number,
    capacity: number,
    heads: Heads,
  ): void;
  /** Copies positions 0..length - 1 of one slot to another (siblings share their prompt's prefill). */
  cacheCopy(keys: F, values: F, from: number, to: number, length: number, capacity: number, heads: Heads): void;

  // ---- feed-forward gate (SwiGLU, Shazeer 2020) --------------------------------------------------------------------

  /** gateUp [rows, 2 · feedForward]: gate then up. out [rows, feedForward] = silu(gate) · up. */
  swiglu(out: F, gateUp: F, rows: number, feedForward: number): void;
  /** dGateUp is overwritten. */
  swigluBackward(dGateUp: F, dOut: F, gateUp: F, rows: number, feedForward: number): void;

  // ---- embedding ---------------------------------------------------------------------------------------------------

  /** out [rows, width] = table[tokens[r]]. */
  embed(out: F, table: F | H, tokens: I, rows: number, width: number): void;
  /** dTable [vocabSize, width] is added to, row by row in order. */
  embedBackward(dTable: F, dOut: F, tokens: I, rows: number, width: number): void;

  // ---- output head: rows of logits [rows, vocabSize] that the caller computes a block at a time --------------------

  /**
   * For each row, with z = logits · inverseTemperature[r]: logSumExp = log Σ exp z, logprobs = z[target] − logSumExp,
   * entropy = −Σ p log p (nats).
   */
  tokenLogprobs(
    logprobs: F, // [rows]
    logSumExp: F, // [rows]
    entropy: F, // [rows]
    logits: F,
    targets: I, // [rows]
    inverseTemperature: F, // [rows]
    rows: number,
    vocabSize: number,
  ): void;
  /** In place: logits become d loss / d logits = dLogprobs[r] · inverseTemperature[r] · (1{v = target} − p_v). */
  tokenLogprobsBackward(
    logits: F,
    dLogprobs: F, // [rows]
    logSumExp: F, // [rows]
    targets: I, // [rows]
    inverseTemperature: F, // [rows]
    rows: number,
    vocabSize: number,
  ): void;
  /**
   * The same where the loss has a gradient on the entropies too: logits become inverseTemperature[r] ·
   * (dLogprobs[r] · (1{v = target} − p_v) − dEntropy[r] · p_v (log p_v + entropy[r])). Rows whose dEntropy is 0 have
   * the bits of `tokenLogprobsBackward`.
   */
  tokenEntropyBackward(
    logits: F,
    dLogprobs: F, // [rows]
    dEntropy: F, // [rows]
    logSumExp: F, // [rows]
    entropy: F, // [rows]
    targets: I, // [rows]
    inverseTemperature: F, // [rows]
    rows: number,
    vocabSize: number,
  ): void;
  /**
   * Draws one token a row by inverting the cumulative distribution of softmax(logits · inverseTemperature) at
   * uniforms[r], in order of token id, after keeping the topK most probable (0: all; ties go to the lower id) and of
   * those the smallest set, at least one token, that reaches the share topP of their probability (1: all). A row
   * whose inverseTemperature is 0 takes the most probable token (ties: the lower id) and its log-prob is that of
   * softmax(logits). `logprobs` are over the full vocabulary and equal `tokenLogprobs` bit for bit.
   */
  sampleTokens(
    tokens: I, // [rows]
    logprobs: F, // [rows]
    logits: F,
    uniforms: F, // [rows]
    inverseTemperature: F, // [rows]
    topK: I, // [rows]
    topP: F, // [rows]
    rows: number,
    vocabSize: number,
  ): void;

  // ---- optimiser ---------------------------------------------------------------------------------------------------

  /** Σ x², accumulated in double precision in a fixed order. */
  sumOfSquares(x: F, length: number): Sum;
  /** out [length] is added to: + x. */
  add(out: F, x: F, length: number): void;
  /**
   * One AdamW step (Loshchilov & Hutter 2019) with g = gradient · gradientScale; the gradient is left as it is.
   * weights −= learningRate · weightDecay · weights; m, v ← moving means of g, g²;
   * weights −= learningRate · m̂ / (sqrt(v̂) + epsilon), hats dividing by 1 − betaᵗ.
   */
  adamw(weights: F, gradient: F, firstMoment: F, secondMoment: F, length: number, settings: AdamWStep): void;
}

/** The operations in this process's own memory. */
export interface HostKernels extends KernelsOn<Float32Array, Int32Array, Uint16Array, number> {
  readonly name: 'native' | 'wasm' | 'reference';
}

/** The operations on whatever memory: what the engine computes with. */
export interface Kernels extends KernelsOn<Floats, Integers, Halves, number | Promise<number>> {
  readonly name: HostKernels['name'] | 'webgpu';
  /** What a device is called. Bits are those of one device. */
  readonly adapter?: string;
  /** What is done at once where calls have a price. */
  readonly fused?: FusedKernels<Floats, Integers, Halves> | undefined;
  /** The most numbers in float32 of one allocation, where a device limits them. */
  readonly mostNumbers?: number;
  /** What a device was given and holds. */
  readonly counts?: DeviceCounts;
}
