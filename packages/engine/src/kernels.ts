/** Kernels that need nothing of Node, and the types of devices. */
export type { Bfloat16Products } from './tensor/bfloat16.js';
export type { BlockFormat } from './tensor/blocks.js';
export type { DeviceCounts } from './tensor/device-counts.js';
export type { Heads, MatrixKind } from './tensor/kernel-arguments.js';
export type { StoredMatrix } from './tensor/kernel-memory.js';
export type { FusedKernels } from './tensor/kernel-operations.js';
export type { HostKernels, Kernels, KernelsOn } from './tensor/kernels.js';
export { linearOntoByCalls } from './tensor/linear-onto.js';
export { createReferenceKernels } from './tensor/reference/reference.js';
export { createWasmKernels } from './tensor/wasm/wasm.js';
