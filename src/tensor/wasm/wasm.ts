import { isBfloat16 } from '../bfloat16.js';
import type { Heads, Kernels } from '../kernels.js';
import { Arguments, rowsIndexed } from './arguments.js';
import { type Exports, instantiate, type Kernel, type WasmKernel } from './instance.js';
import { LinearMemory } from './memory.js';
import { Pool, type StartThread } from './pool.js';
import { webAssembly } from './webassembly.js';

export interface WasmKernels extends Kernels {
  /** Threads that work by now. Others are still coming up; nobody waits for them. */
  working(): number;
}

export interface WasmThreads {
  /** At least 1; the calling thread is one of them. It must be one that may wait: in a browser, a worker. */
  readonly threads: number;
  /** Starts the others. */
  readonly start: StartThread;
}

/**
 * The C++ kernels compiled to WebAssembly with 128-bit vectors, on one thread unless others can be started. Needs no Node:
 * `bytes` is the content of native/drmas.wasm. In a browser it belongs into a worker, since kernels block. There is no fused
 * multiply-add, so results differ from the native ones in the last bits. At most 4 GiB of buffers.
 *
 * Calls throw a RangeError when a buffer is too short or was not allocated here, an index is out of range, or the
 * kernels were disposed of; `allocate` when the memory is full; a BackendError when another thread failed.
 * @throws WebAssembly.CompileError or LinkError when `bytes` is something else, or the engine too old.
 */
export function createWasmKernels(bytes: Uint8Array, { threads, start }: WasmThreads = ALONE): WasmKernels {
  const memory = new LinearMemory();
  const module = new webAssembly.Module(bytes);
  const exports = instantiate(module, memory.memory, memory);
  memory.begin(exports.__heap_base.value);
  exports.__wasm_init_tls(memory.take(exports.__tls_size.value));
  const pool = new Pool(exports, module, memory, threads, start);
  const wasm = guarded(exports, pool);
  forgotten.register(wasm, exports);
  const a = new Arguments(memory);
  // Both round up to whole vectors; what they come to must not leave 32 bits either.
  const packedSize: Kernels['packedSize'] = (inputs, outputs) => {
    a.size(1, a.size(0, inputs) * (a.size(1, outputs) + LANES));
    return wasm.packedSize(inputs, outputs);
  };
  const cacheSlotSize: Kernels['cacheSlotSize'] = (capacity, heads) => {
    const shape = a.heads(1, heads);
    a.size(0, (a.size(0, capacity) + LANES) * heads.kvHeads * heads.headDim);
    return wasm.cacheSlotSize(capacity, ...shape);
  };

  return {
    name: 'wasm',
    isa: 'simd128',
    threads,
    working: () => pool.working,
    allocate: (length) => memory.floats(a.size(0, length)),
    allocateBfloat16: (length) => memory.bfloat16(a.size(0, length)),
    allocateIntegers: (length) => memory.integers(a.size(0, length)),
    dispose: () => {
      a.dispose();
      exports.stop();
    },

    packedSize,
    pack: (packed, weight, inputs, outputs, transpose) => {
      const to = a.weights(0, packed, packedSize(inputs, outputs));
      const from = a.weights(1, weight, inputs * outputs, packed);
      const run = isBfloat16(packed) ? wasm.packBfloat16 : wasm.pack;
      run(to, from, inputs, outputs, transpose);
    },
    linear: (out, x, packed, rows, inputs, outputs, accumulate) => {
      a.size(3, rows);
      const to = a.floats(0, out, rows * outputs);
      const from = a.floats(1, x, rows * inputs);
      const weight = a.weights(2, packed, packedSize(inputs, outputs));
      const run = isBfloat16(packed) ? wasm.linearBfloat16 : wasm.linear;
      if (rows > 0 && inputs > 0) run(to, from, weight, rows, inputs, outputs, accumulate);
    },
    linearWeightGradient: (dWeight, x, dOut, rows, inputs, outputs) => {
      for (const [k, size] of [rows, inputs, outputs].entries()) a.size(3 + k, size);
      const to = a.floats(0, dWeight, inputs * outputs);
      const from = a.floats(1, x, rows * inputs);
      wasm.linearWeightGradient(to, from, a.floats(2, dOut, rows * outputs), rows, inputs, outputs);
    },

    rmsNorm: (out, inverse, x, gain, rows, width, epsilon) => {
      const size = a.size(4, rows) * a.size(5, width);
      const [to, scale] = [a.floats(0, out, size), a.floats(1, inverse, rows)];
      wasm.rmsNorm(to, scale, a.floats(2, x, size), a.floats(3, gain, width), rows, width, epsilon);
    },
    rmsNormBackward: (dx, dGain, dOut, x, gain, inverse, rows, width) => {
      const size = a.size(6, rows) * a.size(7, width);
      const [to, toGain] = [a.floats(0, dx, size), a.floats(1, dGain, width)];
      const [upstream, from, by] = [a.floats(2, dOut, size), a.floats(3, x, size), a.floats(4, gain, width)];
      wasm.rmsNormBackward(to, toGain, upstream, from, by, a.floats(5, inverse, rows), rows, width);
    },
    headNorm: (qkv, queryInverse, keyInverse, queryGain, keyGain, rows, heads, epsilon) => {
      const shape = a.heads(6, heads);
      const { heads: queries, kvHeads, headDim } = heads;
      const at = a.floats(0, qkv, a.size(5, rows) * strideOf(heads));
      const [query, key] = [a.floats(1, queryInverse, rows * queries), a.floats(2, keyInverse, rows * kvHeads)];
      const [byQuery, byKey] = [a.floats(3, queryGain, headDim), a.floats(4, keyGain, headDim)];
      wasm.headNorm(at, query, key, byQuery, byKey, rows, ...shape, epsilon);
    },
    headNormBackward: (dQkv, dQueryGain, dKeyGain, qkv, queryGain, keyGain, queryInverse, keyInverse, rows, heads) => {
      const shape = a.heads(9, heads);
      const { heads: queries, kvHeads, headDim } = heads;
      const size = a.size(8, rows) * strideOf(heads);
      const [at, from] = [a.floats(0, dQkv, size), a.floats(3, qkv, size)];
      const [toQuery, toKey] = [a.floats(1, dQueryGain, headDim), a.floats(2, dKeyGain, headDim)];
      const [byQuery, byKey] = [a.floats(4, queryGain, headDim), a.floats(5, keyGain, headDim)];
      const [query, key] = [a.floats(6, queryInverse, rows * queries), a.floats(7, keyInverse, rows * kvHeads)];
      wasm.headNormBackward(at, toQuery, toKey, from, byQuery, byKey, query, key, rows, ...shape);
    },
    rope: (qkv, table, positions, rows, heads, inverse) => {
      const shape = a.heads(4, heads);
      const at = a.floats(0, qkv, a.size(3, rows) * strideOf(heads));
      const places = a.indices(2, positions, rows);
      const angles = a.floats(1, table, rowsIndexed(positions, rows) * heads.headDim);
      wasm.rope(at, angles, places, rows, ...shape, inverse);
    },

    attention: (out, logSumExp, qkv, starts, sequences, heads) => {
      const shape = a.heads(5, heads);
      const rows = a.rowsOf(3, starts, a.size(4, sequences));
      const to = a.floats(0, out, rows * heads.heads * heads.headDim);
      const lse = a.floats(1, logSumExp, rows * heads.heads);
      const from = a.floats(2, qkv, rows * strideOf(heads));
      wasm.attention(to, lse, from, starts.byteOffset, sequences, ...shape);
    },
    attentionBackward: (dQkv, dOut, out, logSumExp, qkv, starts, sequences, heads) => {
      const shape = a.heads(7, heads);
      const rows = a.rowsOf(5, starts, a.size(6, sequences));
      const [inner, outer] = [rows * strideOf(heads), rows * heads.heads * heads.headDim];
      const [to, upstream, result] = [a.floats(0, dQkv, inner), a.floats(1, dOut, outer), a.floats(2, out, outer)];
      const [lse, from] = [a.floats(3, logSumExp, rows * heads.heads), a.floats(4, qkv, inner)];
      wasm.attentionBackward(to, upstream, result, lse, from, starts.byteOffset, sequences, ...shape);
    },
    cacheSlotSize,
    attentionCached: (out, keys, values, qkv, slots, positions, rows, capacity, heads) => {
      const shape = a.heads(8, heads);
      const to = a.floats(0, out, a.size(6, rows) * heads.heads * heads.headDim);
      const from = a.floats(3, qkv, rows * strideOf(heads));
      const owners = a.indices(4, slots, rows);
      const places = a.indices(5, positions, rows, capacity);
      const room = rowsIndexed(slots, rows) * cacheSlotSize(capacity, heads);
      const [k, v] = [a.floats(1, keys, room), a.floats(2, values, room)];
      wasm.attentionCached(to, k, v, from, owners, places, rows, capacity, ...shape);
    },
    cacheCopy: (keys, values, from, to, length, capacity, heads) => {
      const shape = a.heads(6, heads);
      const slots = Math.max(a.size(2, from), a.size(3, to)) + 1;
      // A length beyond the slot is refused by asking for a buffer that cannot exist.
      const room = a.size(4, length) > capacity ? Infinity : slots * cacheSlotSize(capacity, heads);
      const [k, v] = [a.floats(0, keys, room), a.floats(1, values, room)];
      wasm.cacheCopy(k, v, from, to, length, capacity, ...shape);
    },

    swiglu: (out, gateUp, rows, feedForward) => {
      const size = a.size(2, rows) * a.size(3, feedForward);
      wasm.swiglu(a.floats(0, out, size), a.floats(1, gateUp, 2 * size), rows, feedForward);
    },
    swigluBackward: (dGateUp, dOut, gateUp, rows, feedForward) => {
      const size = a.size(3, rows) * a.size(4, feedForward);
      const to = a.floats(0, dGateUp, 2 * size);
      wasm.swigluBackward(to, a.floats(1, dOut, size), a.floats(2, gateUp, 2 * size), rows, feedForward);
    },

    embed: (out, table, tokens, rows, width) => {
      const to = a.floats(0, out, a.size(3, rows) * a.size(4, width));
      const ids = a.indices(2, tokens, rows);
      const run = isBfloat16(table) ? wasm.embedBfloat16 : wasm.embed;
      run(to, a.weights(1, table, rowsIndexed(tokens, rows) * width), ids, rows, width);
    },
    embedBackward: (dTable, dOut, tokens, rows, width) => {
      const upstream = a.floats(1, dOut, a.size(3, rows) * a.size(4, width));
      const ids = a.indices(2, tokens, rows);
      wasm.embedBackward(a.floats(0, dTable, rowsIndexed(tokens, rows) * width), upstream, ids, rows, width);
    },

    tokenLogprobs: (logprobs, logSumExp, entropy, logits, targets, inverseTemperature, rows, vocabSize) => {
      const from = a.floats(3, logits, a.size(6, rows) * a.size(7, vocabSize));
      const [to, lse, spread] = [a.floats(0, logprobs, rows), a.floats(1, logSumExp, rows), a.floats(2, entropy, rows)];
      const ids = a.indices(4, targets, rows, vocabSize);
      wasm.tokenLogprobs(to, lse, spread, from, ids, a.floats(5, inverseTemperature, rows), rows, vocabSize);
    },
    tokenLogprobsBackward: (logits, dLogprobs, logSumExp, targets, inverseTemperature, rows, vocabSize) => {
      const at = a.floats(0, logits, a.size(5, rows) * a.size(6, vocabSize));
      const [upstream, lse] = [a.floats(1, dLogprobs, rows), a.floats(2, logSumExp, rows)];
      const ids = a.indices(3, targets, rows, vocabSize);
      wasm.tokenLogprobsBackward(at, upstream, lse, ids, a.floats(4, inverseTemperature, rows), rows, vocabSize);
    },
    tokenEntropyBackward: (logits, dLogprobs, dEntropy, logSumExp, entropy, targets, scales, rows, vocabSize) => {
      const at = a.floats(0, logits, a.size(7, rows) * a.size(8, vocabSize));
      const [upstream, spread] = [a.floats(1, dLogprobs, rows), a.floats(2, dEntropy, rows)];
      const [lse, nats] = [a.floats(3, logSumExp, rows), a.floats(4, entropy, rows)];
      const ids = a.indices(5, targets, rows, vocabSize);
      wasm.tokenEntropyBackward(at, upstream, spread, lse, nats, ids, a.floats(6, scales, rows), rows, vocabSize);
    },
    sampleTokens: (tokens, logprobs, logits, uniforms, inverseTemperature, topK, topP, rows, vocabSize) => {
      const from = a.floats(2, logits, a.size(7, rows) * a.size(8, vocabSize));
      const [ids, to] = [a.integers(0, tokens, rows), a.floats(1, logprobs, rows)];
      const [draws, scales] = [a.floats(3, uniforms, rows), a.floats(4, inverseTemperature, rows)];
      const [k, p] = [a.integers(5, topK, rows), a.floats(6, topP, rows)];
      wasm.sampleTokens(ids, to, from, draws, scales, k, p, rows, vocabSize);
    },

    sumOfSquares: (x, length) => wasm.sumOfSquares(a.floats(0, x, length), a.size(1, length)),
    add: (out, x, length) => {
      wasm.add(a.floats(0, out, length), a.floats(1, x, length), a.size(2, length));
    },
    adamw: (weights, gradient, firstMoment, secondMoment, length, settings) => {
      const [w, g] = [a.floats(0, weights, length), a.floats(1, gradient, length)];
      const [m, v] = [a.floats(2, firstMoment, length), a.floats(3, secondMoment, length)];
      const { learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale } = settings;
      const count = a.size(4, length);
      wasm.adamw(w, g, m, v, count, learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale);
    },
  };
}

const ALONE: WasmThreads = { threads: 1, start: () => {} };

/** Threads of kernels that nobody can reach any more end. */
const forgotten = new FinalizationRegistry<Exports>((exports) => exports.stop());

/** The exported functions, each on all threads. */
function guarded(exports: Exports, pool: Pool): Readonly<Record<WasmKernel, Kernel>> {
  const functions = Object.entries(exports).filter(
    (entry): entry is [string, Kernel] => typeof entry[1] === 'function',
  );
  return Object.fromEntries(functions.map(([name, kernel]) => [name, pool.guard(kernel)])) as Record<
    WasmKernel,
    Kernel
  >;
}

/** Of a vector (native/simd.h). */
const LANES = 16;

/** Floats of a row of qkv. */
const strideOf = ({ heads, kvHeads, headDim }: Heads) => (heads + 2 * kvHeads) * headDim;
