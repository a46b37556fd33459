/** Door of `engine`: kernels and devices, for programs that measure or choose them. */
export type { Bfloat16Products } from './tensor/bfloat16.js';
export type { MatrixKind } from './tensor/kernel-arguments.js';
export type { HostKernels, Kernels } from './tensor/kernels.js';
export { inspectNative } from './tensor/native/load-kernels.js';
export { createReferenceKernels } from './tensor/reference/reference.js';
export { selectKernels } from './tensor/select.js';
export { createWasmKernels } from './tensor/wasm/wasm.js';
export { type GpuReport, inspectGpu } from './tensor/webgpu/inspect-gpu.js';
export type { AdapterFacts } from './tensor/webgpu/open-device.js';
export type { Gpu } from './tensor/webgpu/webgpu-api.js';
