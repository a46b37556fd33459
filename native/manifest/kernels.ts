/**
 * Every kernel, declared once. `npm run generate` writes from it what would otherwise be written by hand in six places:
 * the C++ table of an instruction set, the checks of arguments of the native addon and of the WebAssembly module, the
 * program that runs every kernel under the thread sanitizer and on ARM, the one that compares implementations with each
 * other, and the list of the reference kernels. `npm run docs` writes the table of docs/how-the-engine-works.md. The
 * compiler holds the arguments here against src/tensor/kernels.ts, where
 * their meaning is documented.
 *
 * An argument is `name: kind`:
 *
 * | kind | what is passed |
 * |---|---|
 * | `f32[n]`, `i32[n]` | a buffer of at least n numbers |
 * | `i32[n] < m` | the first n lie in [0, m); with `>= 0` they are at least 0 |
 * | `offsets[n]` | n + 1 integers, the first at least 0, which never fall |
 * | `weights[n]` | a buffer in float32 or in bfloat16; several of one kernel are of one kind |
 * | `bf16[n]` | a buffer in bfloat16 |
 * | `size`, `size <= m` | a whole number of at least 0 |
 * | `f32`, `bool`, `heads`, `adamw` | a number, a flag, the structs `Heads` and `AdamWStep` |
 *
 * `const` buffers are only read. The layout of `private` ones differs between implementations. Lengths may use other
 * arguments, `+ - *`, `max(a, b)`, kernels that return a size, `qkvWidth(heads)` (a row of queries, keys and values),
 * `indexed(integers)` (one more than their largest) and `last(offsets)`.
 */
import { attentionKernels } from './attention.js';
import { embeddingKernels } from './embedding.js';
import type { Manifest } from './entry.js';
import { feedForwardKernels } from './feed-forward.js';
import { linearKernels } from './linear.js';
import { normKernels } from './norm.js';
import { optimiserKernels } from './optimiser.js';
import { outputHeadKernels } from './output-head.js';

export const KERNELS = {
  ...linearKernels,
  ...normKernels,
  ...attentionKernels,
  ...feedForwardKernels,
  ...embeddingKernels,
  ...outputHeadKernels,
  ...optimiserKernels,
} as const satisfies Manifest;
