/** The engine's kernels on a GPU: WebGPU of a browser, or of the package `webgpu` in Node. */
export { checkDevice, type DeviceCheck } from './kernels/check-device.js';
export { countingKernels } from './kernels/counting-device.js';
export type { DeviceKernels } from './kernels/device-kernels.js';
export { type GpuReport, inspectGpu } from './kernels/inspect-gpu.js';
export { type AdapterFacts, adapterOf, type FoundAdapter, findAdapter } from './kernels/open-device.js';
export { openDeviceKernels } from './kernels/open-kernels.js';
export type { Gpu } from './kernels/webgpu-api.js';
