import type { DeviceKernels } from './device-kernels.js';
import { createWebgpuKernels } from './webgpu.js';
import type { GpuBuffer, GpuDevice, GpuEncoder, GpuPass } from './webgpu-api.js';

/**
 * A device that executes nothing and holds nothing: it counts the requests of kernels without a GPU. All reads give 0.
 * @param buffer Bytes of a buffer at most
 */
export function createCountingDevice(buffer = Number.MAX_SAFE_INTEGER): GpuDevice {
  const pass: GpuPass = { setPipeline() {}, setBindGroup() {}, dispatchWorkgroups() {}, end() {} };
  const encoder: GpuEncoder = { beginComputePass: () => pass, copyBufferToBuffer() {}, finish: () => ({}) };
  return {
    limits: { maxBufferSize: buffer, maxStorageBufferBindingSize: buffer },
    queue: { writeBuffer() {}, submit() {} },
    lost: new Promise(() => {}),
    onuncapturederror: null,
    createBuffer: ({ size }): GpuBuffer => ({
      mapAsync: () => Promise.resolve(),
      getMappedRange: () => new ArrayBuffer(size),
      destroy() {},
    }),
    createBindGroupLayout: () => ({}),
    createBindGroup: () => ({}),
    createPipelineLayout: () => ({}),
    createShaderModule: () => ({}),
    createComputePipeline: () => ({}),
    createCommandEncoder: () => encoder,
    destroy() {},
  };
}

/** The kernels on such a device, with a GPU's limits of memory or without any. */
export const countingKernels = (limits?: { readonly buffer: number; readonly binding: number }): DeviceKernels =>
  createWebgpuKernels(createCountingDevice(limits?.buffer), 'counted', limits && { binding: limits.binding });
