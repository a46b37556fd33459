/**
 * All kernels, each declared once. `npm run generate` writes from these declarations:
 * - the interface that all sets of kernels implement (src/tensor/kernel-operations.ts), with its documentation;
 * - the C++ table of an instruction set, and the checks of arguments of the native addon and the WebAssembly module;
 * - the list of the reference kernels;
 * - test programs that run all kernels: one under the thread sanitizer and on ARM, one that compares implementations.
 *
 * `npm run docs` writes the table of docs/how-the-engine-works.md. A new kernel is an entry here, a C++ function, a
 * reference in TypeScript, and a shader; the generated tests compare the implementations with the reference.
 *
 * An argument is `name: kind`, or `name?: kind` if it may be undefined:
 *
 * | kind | the argument |
 * |---|---|
 * | `f32[n]`, `i32[n]` | a buffer of at least n numbers |
 * | `i32[n] < m` | the first n lie in [0, m); with `>= 0` they are at least 0 |
 * | `offsets[n]` | n + 1 integers, the first at least 0, none less than the one before |
 * | `weights[n]` | a buffer in float32 or in bfloat16; all such buffers of one call have the same format |
 * | `bf16[n]` | a buffer in bfloat16 |
 * | `size`, `size <= m` | a whole number of at least 0 |
 * | `f32`, `bool` | a number, a flag |
 * | `heads`, `adamw` | a structure of src/tensor/kernel-arguments.ts: `Heads`, `AdamWStep` |
 *
 * Kernels without C++ may also take `f64[n]`, an array of the host, and the structures `sgd`, `nigt`, `before` and
 * `share`.
 *
 * `const` buffers are only read. The layout of `private` ones differs between implementations. Lengths may use other
 * arguments, `+ - *`, `max(a, b)`, kernels that return a size, `qkvWidth(heads)` (the floats of a row of queries, keys
 * and values), `indexed(integers)` (one more than the largest of them) and `last(offsets)`.
 */
import { attentionKernels, convolutionKernels } from './attention.js';
import { embeddingKernels } from './embedding.js';
import type { Entries } from './entry.js';
import { feedForwardKernels } from './feed-forward.js';
import { fusedKernels } from './fused.js';
import { linearKernels } from './linear.js';
import { memoryKernels } from './memory.js';
import { normKernels } from './norm.js';
import { optimiserKernels } from './optimiser.js';
import { outputHeadKernels } from './output-head.js';
import { valueHeadKernels } from './value-head.js';

/** The families of kernels, by their headings in the documentation. */
export const FAMILIES = {
  'linear layers: weight [inputs, outputs], y = x W': linearKernels,
  normalisation: normKernels,
  attention: attentionKernels,
  'short convolution': convolutionKernels,
  'feed-forward gate': feedForwardKernels,
  embedding: embeddingKernels,
  'output head: rows of logits [rows, vocabSize]': outputHeadKernels,
  'value head': valueHeadKernels,
  optimisers: optimiserKernels,
  memory: memoryKernels,
  'several calls in one': fusedKernels,
} as const satisfies Readonly<Record<string, Entries>>;
