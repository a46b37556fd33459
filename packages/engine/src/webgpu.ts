/** Kernels on a GPU: WebGPU of a browser, or of the package `webgpu` in Node. */
export { adapterOf } from './tensor/webgpu/open-device.js';
export { openDeviceKernels } from './tensor/webgpu/open-kernels.js';
