/** The work of a page of test/gpu/chromium.gpu.ts on the browser's own GPU. */
import { checkDevice, type DeviceCheck } from '../../src/engine/tensor/webgpu/check-device.js';
import { adapterOf } from '../../src/engine/tensor/webgpu/open-device.js';
import { createWebgpuKernels } from '../../src/engine/tensor/webgpu/webgpu.js';
import type { Gpu } from '../../src/engine/tensor/webgpu/webgpu-api.js';

declare const navigator: { readonly gpu?: Gpu };

export async function check(): Promise<DeviceCheck> {
  if (navigator.gpu === undefined) throw new Error('this page has no WebGPU');
  const adapter = await adapterOf(navigator.gpu);
  const kernels = createWebgpuKernels(await adapter.open(), adapter.name);
  try {
    return await checkDevice(kernels);
  } finally {
    kernels.dispose();
  }
}
