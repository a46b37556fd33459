/** Kernels that need nothing of Node, and the types of devices. */
export type { Bfloat16Products } from './tensor/bfloat16.js';
export type { BlockFormat } from './tensor/blocks.js';
export type { MatrixKind } from './tensor/kernel-arguments.js';
export type { HostKernels, Kernels } from './tensor/kernels.js';
export { createReferenceKernels } from './tensor/reference/reference.js';
export { createWasmKernels } from './tensor/wasm/wasm.js';
export type { AdapterFacts } from './tensor/webgpu/open-device.js';
export type { Gpu } from './tensor/webgpu/webgpu-api.js';
